"""The running count as a Bytewax dataflow; `bytewax.run` loads `flow` from here, the task comes in the environment."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition

from ..kafka.topics import TAKES_ALL
from ..task import Task

TASK = Task.from_json(os.environ["EVENFLOW_BENCH_TASK"])
AT_ONCE = 10_000
"""Records that a partition gives at a time."""

BEGUN: dict[str, float] = {}
"""The clock and the processor time of this process at its first record."""

Counted = tuple[str, int]


def keyed(message: Any) -> tuple[str, None]:
    """The key that is in the record's value."""
    if not BEGUN:
        BEGUN.update(begun=time.monotonic(), cpu=time.process_time())
    return str(json.loads(message.value)["key"]), None


def counted(count: int | None, _: None) -> tuple[int, int]:
    """One more of this key."""
    n = (count or 0) + 1
    return n, n


class Newest(StatelessSinkPartition[Counted]):
    """Keeps the newest count of each key, and notes at its end what this worker did."""

    def __init__(self, index: int) -> None:
        self._index, self._counts = index, dict[str, int]()

    def write_batch(self, items: list[Counted]) -> None:
        self._counts.update(items)

    def close(self) -> None:
        now = time.monotonic()
        note = {
            "begun": BEGUN.get("begun", now), "ended": now, "cpu_seconds": time.process_time() - BEGUN.get("cpu", time.process_time()),
            "counts": self._counts,
        }  # fmt: skip
        (Path(TASK.output) / f"{self._index}.json").write_text(json.dumps(note))


class Counts(DynamicSink[Counted]):
    """One writer per worker."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Newest:
        return Newest(worker_index)


flow = Dataflow("bench_kafka")
options = {name: str(value) for name, value in TAKES_ALL.items()}
source = KafkaSource([TASK.options["bootstrap"]], [TASK.options["topic"]], tail=False, batch_size=AT_ONCE, add_config=options)
op.output("write", op.stateful_map("count", op.map("key", op.input("records", flow, source), keyed), counted), Counts())
