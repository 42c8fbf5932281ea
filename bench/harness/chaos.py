"""Runs jobs whose processes are killed all the time, and reports whether their rows are right."""

from __future__ import annotations

import argparse
import io
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import evenflow as ef
from evenflow.testing.chaos.chaos import Chaos

from .benchmark import Say
from .jobs import has_ended

POLL_SECONDS = 0.1
ERROR_SECONDS = 300.0
"""The time in which a job that has ended must report its error."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run: `rows` read, rows written by kind of `results`, and how many of these are missing and wrong.

    `kinds` of accidents; `zombies`: workers that continued after they were declared lost; `table`: accidents and recoveries.
    """

    rows: int
    results: Mapping[str, int]
    missing: int
    wrong: int
    kinds: frozenset[str]
    zombies: int
    table: str

    @property
    def right(self) -> bool:
        """True if no row is missing and none is wrong."""
        return not self.missing and not self.wrong

    def __str__(self) -> str:
        written = ", ".join(f"{count:,} {what}" for what, count in self.results.items())
        verdict = "all rows are right" if self.right else f"WRONG: {self.missing:,} rows are missing and {self.wrong:,} are wrong"
        return f"{self.table}\n{self.rows:,} rows in; {written}\n{verdict}"


def disturbed_config(folder: Path, *, interval: str, **settings: Any) -> ef.JobConfig:
    """Return a config with checkpoints in `folder`, unlimited restarts, and patience for a busy machine."""
    return ef.JobConfig(
        checkpoint=ef.CheckpointConfig(str(folder / "checkpoints"), interval=interval),
        restart=ef.RestartConfig("fixed", delay="10ms", most=1_000_000),
        worker=ef.WorkerConfig(cpus=0, heartbeat_timeout="8s", start_timeout="3m"),
        **settings,
    )


def wait_until(job: ef.Job, condition: Callable[[], bool], seconds: float, tend: Callable[[], None] = lambda: None) -> None:
    """Wait until the condition is true or `seconds` have passed, calling `tend` meanwhile. Raises the error of a job that has ended."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        tend()
        if has_ended(job):
            job.wait(ERROR_SECONDS)
            raise ef.JobError(f"job `{job.name}` has ended before its stream did")
        time.sleep(POLL_SECONDS)


def disturb(
    job: ef.Job, chaos: Chaos, seconds: float, enough: Callable[[], bool], end_seconds: float, tend: Callable[[], None] = lambda: None
) -> None:
    """Let accidents happen for `seconds`, and then until there were `enough`, for `end_seconds` at most."""
    with chaos:
        wait_until(job, lambda: False, seconds, tend)
        wait_until(job, enough, end_seconds, tend)


def main(description: str, minutes: float, every: float, run: Callable[[Path, argparse.Namespace, Say], Outcome]) -> int:
    """Run a chaos test in an empty folder. Returns 0 if all rows are right, 1 if not, 130 after Ctrl-C."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--minutes", type=float, default=minutes, help="default: %(default)s")
    arguments.add_argument("--every", type=float, default=every, help="seconds between accidents (default: %(default)s)")
    arguments.add_argument("--seed", type=int, help="accidents and changes, and their order (default: drawn, and printed)")
    given = arguments.parse_args()
    if given.seed is None:
        given.seed = secrets.randbelow(10_000)
    say = partial(print, file=sys.stdout, flush=True)
    say(f"seed {given.seed}: --seed {given.seed} gives the same accidents and changes, in the same order")
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # The paths of Ray's Unix sockets must be short. Ray prints a paragraph about each process that dies.
    with tempfile.TemporaryDirectory(prefix="chaos-", dir="/tmp", ignore_cleanup_errors=True) as folder, redirect_stdout(io.StringIO()):
        try:
            outcome = run(Path(folder), given, say)
        except KeyboardInterrupt:
            say("Stopped.")
            return 130
    say(outcome)
    return 0 if outcome.right else 1
