"""Runs a system in a process of its own, which prints an answer per iteration.

The process is `python -m evenflow.bench.harness.process MODULE`. It reads the task as JSON from its input.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress

from .errors import BenchmarkError
from .task import Answer, Task

MARK = "evenflow-bench-answer "
PACKAGE = __package__.rpartition(".")[0]


def run_system(module: str, task: Task, timeout: float) -> list[Answer]:
    """Run a module of this package that has `run(task) -> Iterator[Answer]`, and return its answers.

    Raises BenchmarkError with the end of its output if it fails or takes longer than `timeout` seconds.
    """
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(  # noqa: S603 -- our own interpreter and module
            [sys.executable, "-m", __name__, module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(task.to_json(), timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise BenchmarkError(f"benchmark {task.name}: {module} did not end within {timeout:g} s") from error
        finally:
            end_group(process)
        errors.seek(0)
        if process.returncode:
            raise BenchmarkError(f"benchmark {task.name}: {module} ended with code {process.returncode}:\n{errors.read()[-3000:]}")
    return [Answer.from_json(line.removeprefix(MARK)) for line in output.splitlines() if line.startswith(MARK)]


def end_group(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a group of its own, with its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def main() -> None:
    """Run the module that the first argument names."""
    task = Task.from_json(sys.stdin.read())
    for answer in importlib.import_module(f"{PACKAGE}.{sys.argv[1]}").run(task):
        print(MARK + answer.to_json(), flush=True)


if __name__ == "__main__":
    main()
