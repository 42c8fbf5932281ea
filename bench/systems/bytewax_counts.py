"""The count per key of `output_log` as a Bytewax dataflow; `bytewax.run` loads `flow` from here, the folder comes in the environment.

Each of two workers reads half of the rows, by batches of up to 1,000, and is resumed at the row that its partition's snapshot names.
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
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

from ..live_stream import count
from ..output_log import KEYS, OutputLog, counts_off, due, key_of

PARTITIONS = 2
ROWS = 1000
RATE = 10_000
"""Rows a second: with a tenth of the others' it can keep up with its snapshots."""
FOLDER = Path(os.environ["EVENFLOW_BENCH_FOLDER"])

Keyed = tuple[str, dict[str, int]]
Position = tuple[int, int]


class Part(StatefulSourcePartition[Keyed, Position]):
    """Rows `seq` with `seq % PARTITIONS == index`. A snapshot is marked in the folder once it has every key."""

    def __init__(self, index: int, position: Position | None) -> None:
        self._index = index
        self._next, self._begun = position or (index, 0)

    def next_batch(self) -> Iterable[Keyed]:
        end = due(self._begun, time.time_ns(), RATE) if self._begun else KEYS
        seq = np.arange(self._next, min(end, self._next + ROWS * PARTITIONS), PARTITIONS)
        if len(seq):
            self._next = int(seq[-1]) + PARTITIONS
        if self._next >= KEYS and not self._begun:
            self._begun = time.time_ns()
        return [(str(key), {"seq": at}) for key, at in zip(key_of(seq).tolist(), seq.tolist(), strict=True)]

    def next_awake(self) -> datetime | None:
        return datetime.now(UTC) + timedelta(seconds=0.01) if self._begun and due(self._begun, time.time_ns(), RATE) < self._next else None

    def snapshot(self) -> Position:
        if self._next >= KEYS:
            with (FOLDER / f"snapshots-{self._index}").open("a") as file:
                file.write(f"{time.time_ns()}\n")
        return self._next, self._begun


class Parts(FixedPartitionedSource[Keyed, Position]):
    """A partition per worker."""

    def list_parts(self) -> list[str]:
        return [str(index) for index in range(PARTITIONS)]

    def build_part(self, step_id: str, for_part: str, resume_state: Position | None) -> Part:
        return Part(int(for_part), resume_state)


class Written(StatelessSinkPartition[Any]):
    """Notes when results came."""

    def __init__(self) -> None:
        self._log = OutputLog(str(FOLDER / "outputs"))

    def write_batch(self, items: list[Any]) -> None:
        seq, counts = (np.array([row[name] for _, row in items]) for name in ("seq", "n"))
        self._log.note(int(seq.max()), len(seq), counts_off(seq, counts))

    def close(self) -> None:
        self._log.close()


class Outputs(DynamicSink[Any]):
    """One writer per worker."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Written:
        return Written()


flow = Dataflow("bench_recovery")
op.output("write", op.stateful_map("count", op.input("rows", flow, Parts()), count), Outputs())
