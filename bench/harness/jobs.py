"""Waits for jobs, and ends them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import evenflow as ef

from .errors import BenchmarkError
from .machine import CpuWatch

T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str, seconds: float, every: float = 0.02) -> T:
    """Return the first true value of `condition`. Raises BenchmarkError after `seconds`, naming what it waited for."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise BenchmarkError(f"waited {seconds:g} s in vain until {what}")
        time.sleep(every)
    return found


def rows_read(job: ef.Job, operator: str) -> int:
    """Return the number of rows that the workers of operators have read whose names begin with `operator`."""
    return sum(figures.rows_in for figures in job.metrics() if figures.operator.startswith(operator))


def has_ended(job: ef.Job) -> bool:
    """Return True if the job has ended; False while its coordinator doesn't answer, because it may be restarting."""
    try:
        return job.status().state.final
    except ef.JobError:
        return False


@contextmanager
def cancelled(job: ef.Job, wait: float) -> Iterator[ef.Job]:
    """Cancel the job at the end of the block unless it has ended, and wait for it."""
    try:
        yield job
    finally:
        with suppress(ef.EvenflowError):
            job.cancel()
            job.wait(wait)


def drain(job: ef.Job, wait: float) -> None:
    """Stop the job after all records that it has read."""
    job.stop(drain=True)
    job.wait(wait)


def timed(job: ef.Job, wait: float, *, newcomers: bool = False) -> tuple[float, float]:
    """Wait for the end of a job that has started; returns its seconds from now on, by the clock and of processor time."""
    begun = job.status().running_seconds
    with CpuWatch(newcomers=newcomers) as cpu:
        job.wait(wait)
    return job.status().running_seconds - begun, cpu.seconds
