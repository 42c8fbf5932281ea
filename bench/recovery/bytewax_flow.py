"""The count per key of `output_log` as a Bytewax dataflow. `bytewax.run` loads `flow` from here; the folder comes in the environment.

Each of two workers reads half of the rows, in batches of up to 1,000, and resumes at the row of its partition's snapshot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import numpy as np
from bytewax.dataflow import Dataflow
from bytewax.inputs import StatefulSourcePartition
from bytewax.outputs import StatelessSinkPartition

from ..baselines.bytewax import PROCESSES
from ..baselines.bytewax_io import EachWorker, Parts
from .live_stream import count
from .output_log import KEYS, OutputLog, due, key_of

ROWS = 1000
RATE = 10_000
"""Rows a second: with a tenth of the others' it can keep up with its snapshots."""
FOLDER = Path(os.environ["EVENFLOW_BENCH_FOLDER"])

Keyed = tuple[str, dict[str, int]]
Position = tuple[int, int]


class Part(StatefulSourcePartition[Keyed, Position]):
    """Rows `seq` with `seq % PROCESSES == index`. It marks a snapshot in the folder once it has every key."""

    def __init__(self, index: int, position: Position | None) -> None:
        self._index = index
        self._next, self._begun = position or (index, 0)

    def next_batch(self) -> Iterable[Keyed]:
        end = due(self._begun, time.time_ns(), KEYS, RATE) if self._begun else KEYS
        seq = np.arange(self._next, min(end, self._next + ROWS * PROCESSES), PROCESSES)
        if len(seq):
            self._next = int(seq[-1]) + PROCESSES
        if self._next >= KEYS and not self._begun:
            self._begun = time.time_ns()
        return [(str(key), {"seq": at}) for key, at in zip(key_of(seq, KEYS, KEYS).tolist(), seq.tolist(), strict=True)]

    def next_awake(self) -> datetime | None:
        return (
            datetime.now(UTC) + timedelta(seconds=0.01)
            if self._begun and due(self._begun, time.time_ns(), KEYS, RATE) < self._next
            else None
        )

    def snapshot(self) -> Position:
        if self._next >= KEYS:
            with (FOLDER / f"snapshots-{self._index}").open("a") as file:
                file.write(f"{time.time_ns()}\n")
        return self._next, self._begun


class Written(StatelessSinkPartition[Any]):
    """Logs when results were written."""

    def __init__(self, _: int) -> None:
        self._log = OutputLog(str(FOLDER / "outputs"))

    def write_batch(self, items: list[Any]) -> None:
        seq, counts = (np.array([row[name] for _, row in items]) for name in ("seq", "n"))
        self._log.note_counts(seq, counts, KEYS, KEYS)

    def close(self) -> None:
        self._log.close()


flow = Dataflow("bench_recovery")
op.output("write", op.stateful_map("count", op.input("rows", flow, Parts(PROCESSES, Part)), count), EachWorker(Written))
