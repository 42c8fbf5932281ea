"""T2 as a Bytewax dataflow. `bytewax.run` loads `flow` from here; the task comes in the environment."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bytewax.operators as op
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.inputs import StatefulSourcePartition
from bytewax.outputs import StatelessSinkPartition

from ..baselines.bytewax import PROCESSES
from ..baselines.bytewax_io import EachWorker, Parts
from ..harness.task import Task
from .evenflow import alert
from .loop import columns_of

ROWS_PER_BATCH = 1000

TASK = Task.from_json(os.environ["EVENFLOW_BENCH_TASK"])
CLOCKS = Path(os.environ["EVENFLOW_BENCH_CLOCKS"])

Keyed = tuple[str, dict[str, Any]]


class Half(StatefulSourcePartition[Keyed, None]):
    """The rows of half of the keys, decoded before the clock starts."""

    def __init__(self, index: int, _: None) -> None:
        self._columns = columns_of(TASK.files, index, PROCESSES)
        self._at = 0
        self._index = index

    def next_batch(self) -> Iterable[Keyed]:
        if self._at == 0:
            (CLOCKS / f"begin-{self._index}").write_text(str(time.monotonic()))
        part = slice(self._at, self._at + ROWS_PER_BATCH)
        self._at += ROWS_PER_BATCH
        columns = self._columns
        if part.start >= len(columns["key"]):
            raise StopIteration
        return [
            (str(key), {"key": key, "ts": ts, "value": value})
            for key, ts, value in zip(columns["key"][part], columns["ts"][part], columns["value"][part], strict=True)
        ]

    def snapshot(self) -> None:
        return None


class Alerts(StatelessSinkPartition[Keyed]):
    """Gathers a worker's alerts, and writes them when the worker ends."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._rows: list[dict[str, Any]] = []

    def write_batch(self, items: list[Keyed]) -> None:
        self._rows.extend(row for _, row in items)

    def close(self) -> None:
        pq.write_table(pa.Table.from_pylist(self._rows), f"{TASK.output}/part-{self._index}.parquet")
        (CLOCKS / f"end-{self._index}").write_text(str(time.monotonic()))


flow = Dataflow("bench")
alerts = op.stateful_map("alert", op.input("rows", flow, Parts(PROCESSES, Half)), alert)
op.output("write", op.filter_map_value("found", alerts, lambda row: row), EachWorker(Alerts))
