"""Runs a system in a process of its own, which prints an answer per iteration.

The other end is `python -m evenflow.bench.process SYSTEM`, which reads the task as JSON on its input.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile

from .errors import BenchmarkError
from .task import Answer, Task

_MODULES = (
    "evenflow",
    "local",
    "spark",
    "duckdb",
    "bytewax",
    "loop",
    "operators_evenflow",
    "operators_flink",
    "operators_spark",
    "nexmark_evenflow",
    "nexmark_flink",
    "nexmark_spark",
    "kafka_evenflow",
    "kafka_bytewax",
    "kafka_quix",
    "kafka_writing",
)
SYSTEMS = {name: f"{__package__}.systems.{name}" for name in _MODULES}
MARK = "evenflow-bench-answer "


def run_system(system: str, task: Task, timeout: float) -> list[Answer]:
    """The system's answers. Raises BenchmarkError with the end of its output if it fails or takes longer than `timeout` seconds."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(  # noqa: S603 -- our own interpreter and module
            [sys.executable, "-m", f"{__package__}.process", system],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(task.to_json(), timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise BenchmarkError(f"benchmark {task.name}: {system} did not end within {timeout:g} s") from error
        finally:
            _end_group(process.pid)
            process.wait(30)
        errors.seek(0)
        if process.returncode:
            raise BenchmarkError(f"benchmark {task.name}: {system} ended with code {process.returncode}:\n{errors.read()[-3000:]}")
    return [Answer.from_json(line.removeprefix(MARK)) for line in output.splitlines() if line.startswith(MARK)]


def _end_group(leader: int) -> None:
    """End remaining child processes; the process has a group of its own."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def main() -> None:
    """Run the system that the first argument names."""
    task = Task.from_json(sys.stdin.read())
    for answer in importlib.import_module(SYSTEMS[sys.argv[1]]).run(task):
        print(MARK + answer.to_json(), flush=True)


if __name__ == "__main__":
    main()
