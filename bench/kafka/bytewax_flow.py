"""The running count as a Bytewax dataflow. `bytewax.run` loads `flow` from here; the task comes in the environment."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.outputs import StatelessSinkPartition

from ..baselines.bytewax_io import EachWorker
from ..harness.task import Task
from .topics import READS_ALL

TASK = Task.from_json(os.environ["EVENFLOW_BENCH_TASK"])
AT_ONCE = 10_000
"""Records that a partition gives at a time."""

BEGUN: dict[str, float] = {}
"""The clock and the processor time of this process at its first record."""

Counted = tuple[str, int]


def keyed(message: Any) -> tuple[str, None]:
    """Return the key that is in the record's value."""
    if not BEGUN:
        BEGUN.update(begun=time.monotonic(), cpu=time.process_time())
    return str(json.loads(message.value)["key"]), None


def counted(count: int | None, _: None) -> tuple[int, int]:
    """Count the records of a key."""
    n = (count or 0) + 1
    return n, n


class Newest(StatelessSinkPartition[Counted]):
    """Keeps the newest count of each key, and notes what this worker did when it ends."""

    def __init__(self, index: int) -> None:
        self._index, self._counts = index, dict[str, int]()

    def write_batch(self, items: list[Counted]) -> None:
        self._counts.update(items)

    def close(self) -> None:
        now, cpu = time.monotonic(), time.process_time()
        note = {"begun": BEGUN.get("begun", now), "ended": now, "cpu_seconds": cpu - BEGUN.get("cpu", cpu), "counts": self._counts}
        (Path(TASK.output) / f"{self._index}.json").write_text(json.dumps(note))


flow = Dataflow("bench_kafka")
options = {name: str(value) for name, value in READS_ALL.items()}
source = KafkaSource([TASK.options["bootstrap"]], [TASK.options["topic"]], tail=False, batch_size=AT_ONCE, add_config=options)
op.output("write", op.stateful_map("count", op.map("key", op.input("records", flow, source), keyed), counted), EachWorker(Newest))
