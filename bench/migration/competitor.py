"""Processes that compete with a job for the processor: they take as much of its time as a move took, and do nothing else.

What they add to the latency, a move would add even if no record ever waited for state.

>>> shares(0.5), shares(1.5)
([0.5], [0.75, 0.75])
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.synchronize
import os
import time
from math import ceil

from ..harness.errors import BenchmarkError

SLICE = 0.003
"""Seconds for which a competitor works at a time: as long as a worker spends on arriving state between two batches."""

START, END = 30.0, 10.0
"""Seconds that all competitors have to start, and to end."""


def shares(cores: float) -> list[float]:
    """Return the share of a core of each process that together take `cores` cores."""
    processes = max(1, ceil(cores))
    return [cores / processes] * processes


def compete(cores: float, seconds: float, nice: int) -> float:
    """Take `cores` cores for `seconds` at this priority, and return when that began, in seconds since 1970."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(len(shares(cores)) + 1)
    processes = [context.Process(target=work, args=(share, seconds, nice, ready), daemon=True) for share in shares(cores)]
    for process in processes:
        process.start()
    ready.wait(START)
    begun = time.time()
    for process in processes:
        process.join(seconds + END)
    if any(codes := [process.exitcode for process in processes]):
        raise BenchmarkError(f"competitors ended with the codes {codes}, so they did not take the time that they should")
    return begun


def work(share: float, seconds: float, nice: int, ready: multiprocessing.synchronize.Barrier) -> None:
    """Take this share of a core, a slice at a time."""
    ready.wait(START)
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    begun, before = time.monotonic(), time.thread_time()
    while time.monotonic() < begun + seconds:
        until = time.thread_time() + SLICE
        while time.thread_time() < until:
            pass
        ahead = (time.thread_time() - before) / share - (time.monotonic() - begun)
        if ahead > 0:
            time.sleep(ahead)
