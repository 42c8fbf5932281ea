"""A running count of a topic's records per key in evenflow on Ray, two workers per operator; its sink keeps each key's newest count.

`aggregate` counts by the batch, `function` calls a Python function for each record, as the other systems do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import evenflow as ef

from ...engine.batch import Batch
from ...engine.sink import SinkWriter
from ..harness.conditions import scratch
from ..harness.jobs import timed
from ..harness.sinks import MeasuringSink
from ..harness.task import Answer, Task
from .records import KEYS, TYPES, result_of
from .topics import READS_ALL

WAIT = 600.0


def run(task: Task) -> Iterator[Answer]:
    """Run a job for each iteration. `options`: `bootstrap`, `topic`, `how` ("aggregate" or "function"), `interval` of the checkpoints."""
    given = task.options
    for number in range(task.repeat):
        sink = NewestCounts()
        flow = ef.Dataflow(f"bench-{task.name}-{number}")
        rows = flow.read(ef.read_kafka(given["topic"], bootstrap=given["bootstrap"], until="now", schema=TYPES, options=READS_ALL))
        keyed = rows.key_by("key")
        counts = keyed.aggregate(n=ef.count()) if given["how"] == "aggregate" else keyed.stateful_map(counted)
        counts.write(sink)
        with scratch("checkpoints") as folder:
            job = flow.run(config=ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(str(folder), interval=given["interval"])))
            seconds, cpu = timed(job, WAIT)
        yield Answer(seconds, task.rows, result_of(sink.counts), {"cpu_seconds": cpu})


def counted(count: int | None, row: Mapping[str, Any]) -> tuple[int, dict[str, int]]:
    """Count the records of a key.

    >>> counted(2, {"key": 7})
    (3, {'key': 7, 'n': 3})
    """
    n = (count or 0) + 1
    return n, {"key": row["key"], "n": n}


class NewestCounts(MeasuringSink):
    """Keeps the newest count of each key, in `counts`."""

    guarantee = "at least once (a repeated count is the same)"

    def __init__(self) -> None:
        self.name, self.counts = "counts", dict[int, int]()

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return CountsWriter()

    def deliver(self, payload: Any) -> None:
        counts = np.frombuffer(payload, np.int64)
        for key in np.flatnonzero(counts).tolist():
            self.counts[key] = max(self.counts.get(key, 0), int(counts[key]))


class CountsWriter(SinkWriter):
    """The writer of `NewestCounts`."""

    def __init__(self) -> None:
        self._counts = np.zeros(KEYS, np.int64)

    def write(self, batch: Batch) -> None:
        keys, counts = (batch.rows.column(name).to_numpy() for name in ("key", "n"))
        np.maximum.at(self._counts, keys, counts)

    def prepare(self, checkpoint: int) -> list[Any]:
        return [self._counts.tobytes()]
