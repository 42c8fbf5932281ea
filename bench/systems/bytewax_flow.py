"""T2 as a Bytewax dataflow; `bytewax.run` loads `flow` from here, the task comes in the environment."""

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
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

from ..task import Task
from .evenflow import alert
from .loop import columns_of

ROWS_PER_BATCH = 1000
PARTITIONS = 2

TASK = Task.from_json(os.environ["EVENFLOW_BENCH_TASK"])
CLOCKS = Path(os.environ["EVENFLOW_BENCH_CLOCKS"])

Keyed = tuple[str, dict[str, Any]]


class Half(StatefulSourcePartition[Keyed, None]):
    """The rows of half of the keys, decoded before the clock starts."""

    def __init__(self, index: int) -> None:
        self._columns = columns_of(TASK.files, index, PARTITIONS)
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


class Halves(FixedPartitionedSource[Keyed, None]):
    """Two partitions, one per worker."""

    def list_parts(self) -> list[str]:
        return [str(index) for index in range(PARTITIONS)]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> Half:
        return Half(int(for_part))


class Alerts(StatelessSinkPartition[Keyed]):
    """Gathers a worker's alerts and writes them at its end."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._rows: list[dict[str, Any]] = []

    def write_batch(self, items: list[Keyed]) -> None:
        self._rows.extend(row for _, row in items)

    def close(self) -> None:
        pq.write_table(pa.Table.from_pylist(self._rows), f"{TASK.output}/part-{self._index}.parquet")
        (CLOCKS / f"end-{self._index}").write_text(str(time.monotonic()))


class ParquetAlerts(DynamicSink[Keyed]):
    """One file per worker."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Alerts:
        return Alerts(worker_index)


flow = Dataflow("bench")
alerts = op.stateful_map("alert", op.input("rows", flow, Halves()), alert)
op.output("write", op.filter_map_value("found", alerts, lambda row: row), ParquetAlerts())
