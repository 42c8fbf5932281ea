"""What measuring load takes of T1's processor time, by timing its steps in a job of one thread.

Pairs of whole jobs can't tell two percent on a machine whose speed changes by more from one second to the next. The time of a step and that
of the job around it pass on the same machine. What a step costs the others, by what it leaves in the processor's cache, is not in it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import evenflow as ef

from ..actors.task.meter import Meter
from ..engine.keys.load import KeyLoad
from ..engine.operators.aggregation.aggregate_windows import AggregateWindowsInstance
from .conditions import scratch
from .data import Dataset
from .systems.evenflow import flow_of
from .task import Task

STEPS: tuple[tuple[type, str], ...] = (
    (AggregateWindowsInstance, "_note_panes"),
    (KeyLoad, "take"),
    (KeyLoad, "take_hot"),
    (Meter, "add_useful"),
    (Meter, "due"),
    (Meter, "take"),
)
"""Where the job measures its load; none of them calls another, but for `Meter.take`, which calls those of `KeyLoad`."""


def share_percent(dataset: Dataset) -> float:
    """Percent of the processor time of one job's thread."""
    output = scratch("overhead")
    task = Task("t1", str(dataset.folder), dataset.rows, dataset.last_window, f"{output}/out", 1)
    try:
        with timed(STEPS) as spent:
            begun = time.process_time()
            flow_of(task, "bench-overhead").run(runtime="local", config=ef.JobConfig(parallelism=1)).wait()
            return 100 * spent() / (time.process_time() - begun)
    finally:
        shutil.rmtree(output)


@contextmanager
def timed(steps: tuple[tuple[type, str], ...]) -> Iterator[Callable[[], float]]:
    """Meanwhile these methods take down their processor time; gives their sum so far, in seconds, each second once."""
    spent, depth = [0.0], [0]
    before = [getattr(owner, name) for owner, name in steps]

    def watched(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*given: Any, **named: Any) -> Any:
            depth[0] += 1
            begun = time.thread_time()
            try:
                return method(*given, **named)
            finally:
                depth[0] -= 1
                if not depth[0]:
                    spent[0] += time.thread_time() - begun

        return call

    try:
        for (owner, name), method in zip(steps, before, strict=True):
            setattr(owner, name, watched(method))
        yield lambda: spent[0]
    finally:
        for (owner, name), method in zip(steps, before, strict=True):
            setattr(owner, name, method)
