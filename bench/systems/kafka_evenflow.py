"""A running count of a topic's records per key in evenflow on Ray, two workers per operator; its sink keeps each key's newest count.

`aggregate` counts by the batch, `function` calls a Python function for each record, as the other systems do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import evenflow as ef

from ...engine.batch import Batch
from ...engine.sink import Sink, SinkWriter
from ..kafka.records import KEYS, TYPES, result_of
from ..kafka.topics import TAKES_ALL
from ..machine import CpuWatch
from ..task import Answer, Task

WAIT = "600s"


def run(task: Task) -> Iterator[Answer]:
    """`options`: `bootstrap`, `topic`, `how` ("aggregate" or "function"), and `interval` of the checkpoints."""
    given = task.options
    for number in range(task.repeat):
        sink = NewestCounts()
        flow = ef.Dataflow(f"bench-{task.name}-{number}")
        rows = flow.read(ef.read_kafka(given["topic"], bootstrap=given["bootstrap"], until="now", schema=TYPES, options=TAKES_ALL)).key_by(
            "key"
        )
        counts = rows.aggregate(n=ef.count()) if given["how"] == "aggregate" else rows.stateful_map(counted)
        counts.write(sink)
        with tempfile.TemporaryDirectory(prefix="evenflow-bench-checkpoints-") as folder:
            config = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(folder, interval=given["interval"]))
            job = flow.run(config=config)
            begun = job.status().running_seconds
            with CpuWatch() as cpu:
                job.wait(WAIT)
            seconds = job.status().running_seconds - begun
        yield Answer(seconds, task.rows, result_of(sink.counts), {"cpu_seconds": cpu.seconds})


def counted(count: int | None, row: Mapping[str, Any]) -> tuple[int, dict[str, int]]:
    """One more of this key.

    >>> counted(2, {"key": 7})
    (3, {'key': 7, 'n': 3})
    """
    n = (count or 0) + 1
    return n, {"key": row["key"], "n": n}


class NewestCounts(Sink):
    """Keeps the newest count of each key, in `counts`."""

    guarantee = "at least once (a count that comes again is the same)"

    def __init__(self) -> None:
        self.name, self.counts = "counts", dict[int, int]()

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return CountsWriter()

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        return list(committables)

    def deliver(self, payload: Any) -> None:
        counts = np.frombuffer(payload, np.int64)
        for key in np.flatnonzero(counts).tolist():
            self.counts[key] = max(self.counts.get(key, 0), int(counts[key]))


class CountsWriter(SinkWriter):
    """See `NewestCounts`."""

    def __init__(self) -> None:
        self._counts = np.zeros(KEYS, np.int64)

    def write(self, batch: Batch) -> None:
        keys, counts = (batch.rows.column(name).to_numpy() for name in ("key", "n"))
        np.maximum.at(self._counts, keys, counts)

    def prepare(self, checkpoint: int) -> list[Any]:
        return [self._counts.tobytes()]
