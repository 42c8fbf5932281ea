"""The start: what a process loads, a small flow from the first line of its script to the last, and jobs on Ray beside empty actors.

Every figure is of processes of their own, which keep bytecode as a user's do. What a process loads is processor time, which other programs
disturb less than wall-clock time; how long a job starts is the wall clock's, beside that of five empty actors right before or after it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from . import machine
from .conditions import record, scratch
from .errors import BenchmarkError
from .record import Case, Run, Verdict

TIMEOUT = 1200.0

LOADING = {
    "import evenflow": ("", "import evenflow as ef; ef.Dataflow, ef.JobConfig", 0.3),
    "a worker's modules": ("import ray, numpy, pyarrow", "import evenflow.actors.processes.worker, evenflow.actors.task.task_run", 0.3),
    "a coordinator's modules": ("import ray, numpy, pyarrow", "import evenflow.actors.processes.coordinator", None),
}
"""What is loaded first and not counted, what is counted, and the target in seconds. Each of Ray's processes has NumPy and Arrow anyway."""

_TIMED = "import time; {first}\nbegun = time.process_time()\n{then}\nprint(time.process_time() - begun)"

SCRIPT = """
import evenflow as ef

flow, rows = ef.Dataflow("start"), []
flow.read(ef.from_items(["a", "b", "a"])).key_by("item").aggregate(n=ef.count(), emit="final").write(ef.to_list(rows))
flow.run(runtime="local").wait()
assert sorted(row["n"] for row in rows) == [1, 2], rows
"""
LOCAL_SECONDS, TIMES_ACTORS, SECOND_SECONDS = 0.8, 1.2, 2.0

NOT_MEASURED = (
    "the start of Ray itself",
    "a job that goes on from a checkpoint: its workers load their state too",
    "more than one node",
)


def run(*, repeat: int, say: Callable[[str], None]) -> Run:
    """`repeat` iterations of each figure, after one that is not counted."""
    folder = scratch("start")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
    try:
        busy = machine.busy_share()
        loading = {name: _seconds_of_loading(name, repeat, environment) for name in LOADING}
        local = _seconds_of_local(repeat, environment)
        jobs = _seconds_of_jobs(repeat, environment)
    finally:
        shutil.rmtree(folder)
    ratios = [job / actors for job, actors in zip(jobs["job"], jobs["actors"], strict=True)]
    details = tuple({"busy_before": busy} for _ in range(repeat))
    cases = [
        *(Case(f"{name}, processor", "s", "lower", tuple(values), details) for name, values in loading.items()),
        Case("local flow of three rows, script", "s", "lower", tuple(local), details),
        Case("five empty actors", "s", "lower", tuple(jobs["actors"]), details),
        Case("job of four workers", "s", "lower", tuple(jobs["job"]), details),
        Case("second job", "s", "lower", tuple(jobs["second"]), details),
        Case("five empty actors, processor", "s", "lower", tuple(jobs["actors_cpu"]), details),
        Case("job of four workers, processor", "s", "lower", tuple(jobs["job_cpu"]), details),
    ]
    verdicts = [
        *(
            Verdict(f"{name}, seconds of processor time", median(loading[name]), target, "lower")
            for name, (_, _, target) in LOADING.items()
            if target is not None
        ),
        Verdict("local flow of three rows, seconds", median(local), LOCAL_SECONDS, "lower"),
        Verdict("job of four workers / five empty actors (median of pairs)", median(ratios), TIMES_ACTORS, "lower"),
        Verdict("second job of a driver, seconds", median(jobs["second"]), SECOND_SECONDS, "lower"),
    ]
    for case in cases:
        say(f"{case.name}: {case.median:.2f} s")
    return record("start", {"repeat": repeat}, cases, verdicts, not_measured=NOT_MEASURED)


def _seconds_of_loading(name: str, repeat: int, environment: Mapping[str, str]) -> list[float]:
    first, then, _ = LOADING[name]
    return [float(_output(["-c", _TIMED.format(first=first, then=then)], environment)) for _ in range(repeat + 1)][1:]


def _seconds_of_local(repeat: int, environment: Mapping[str, str]) -> list[float]:
    found = []
    for _ in range(repeat + 1):
        begun = time.perf_counter()
        _output(["-c", SCRIPT], environment)
        found.append(time.perf_counter() - begun)
    return found[1:]


def _seconds_of_jobs(repeat: int, environment: Mapping[str, str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = json.loads(_output(["-m", f"{__package__}.start_jobs", str(repeat)], environment).splitlines()[-1])
    return found


def _output(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """What this interpreter prints. Raises BenchmarkError with the end of its errors if it fails."""
    try:
        ended = subprocess.run(  # noqa: S603 -- our own interpreter and modules
            [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=True
        )
    except subprocess.CalledProcessError as error:
        raise BenchmarkError(
            f"benchmark start: {' '.join(arguments):.60} ended with {error.returncode}:\n{error.stderr[-3000:]}"
        ) from error
    return ended.stdout
