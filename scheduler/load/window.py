"""The measurements of a worker in one window of time, by which balancing and scaling decide.

Useful time (DS2, Kalavri et al., OSDI 2018) is the time spent deserialising, processing and serialising. It excludes waiting for
input, for credit, and for a CPU that other processes use.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from ...engine.dropped_records import DroppedRecord
from ...engine.functions.measures import Measured
from ...engine.protocol.ids import ChannelId, WorkerId
from ...engine.source import SplitFigures
from .batch_costs import BatchCosts


@dataclass(frozen=True, slots=True)
class WorkerWindow:
    """One worker's window.

    `start`, `length`: seconds since the epoch, seconds. `useful`, `wait_input`, `wait_credit`, `starved` (ready, without a CPU):
    seconds. `groups`: key groups with load, int, shape (n,); `load`: useful seconds of each, `keyed_records`: the records counted
    for it. `hot_keys`: (key, records), hottest first; `hot_left`: the number of these records from the left side of a join, in
    the same order. `latencies`: milliseconds from source to here, of latency marks; only workers without outputs have them.
    `watermark`: microseconds since the epoch. `queued`, `queued_rows`: batches that wait, and their rows; `backlog`: available
    rows that its source has not read, None if it isn't a source or doesn't know; `splits`: the source's progress with each of its
    splits. `costs`: of its batches. `dropped_records`: samples of the records that its operators dropped, for the coordinator to keep.
    `measured`: the metrics of users' functions since the worker began. `blocked`: the channels that wait for credit at its end.
    """

    worker: WorkerId
    start: float
    length: float
    rows_in: int = 0
    rows_out: int = 0
    useful: float = 0.0
    wait_input: float = 0.0
    wait_credit: float = 0.0
    starved: float = 0.0
    queued: int = 0
    queued_rows: int = 0
    backlog: int | None = None
    splits: tuple[SplitFigures, ...] = ()
    watermark: int | None = None
    late_records: int = 0
    skipped_records: int = 0
    keyed_records: int = 0
    state_bytes: int = 0
    refused_messages: int = 0
    groups: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    load: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    hot_keys: tuple[tuple[Any, int], ...] = ()
    hot_left: tuple[int, ...] = ()
    latencies: tuple[float, ...] = ()
    costs: BatchCosts = field(default_factory=BatchCosts)
    dropped_records: tuple[DroppedRecord, ...] = ()
    measured: tuple[Measured, ...] = ()
    blocked: tuple[ChannelId, ...] = ()

    def __reduce__(self) -> tuple[type[WorkerWindow], tuple[Any, ...]]:
        # A dataclass with slots restores itself in several times the time of its constructor, and a coordinator gets thousands a second.
        return WorkerWindow, tuple(getattr(self, each) for each in _FIELDS)


_FIELDS = tuple(each.name for each in fields(WorkerWindow))
