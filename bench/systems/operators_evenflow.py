"""The operators' tasks in evenflow on Ray with two workers per operator; the time is from when all workers run until the job has ended."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import evenflow as ef

from ..machine import CpuWatch
from ..task import Answer, Task

NAMES = ("key", "ts", "value", "seq")
TYPES = {"key": "int64", "ts": "int64", "value": "float64", "seq": "int64"}


def run(task: Task) -> Iterator[Answer]:
    """A job for each iteration."""
    for number in range(task.repeat):
        shutil.rmtree(task.output, ignore_errors=True)
        job = _flow(task, f"bench-{task.name}-{number}").run(config=ef.JobConfig(parallelism=2))
        begun = job.status().running_seconds
        with CpuWatch() as cpu:
            job.wait("3000s")
        yield Answer(job.status().running_seconds - begun, task.rows, {}, {"cpu_seconds": cpu.seconds})


def _flow(task: Task, name: str) -> ef.Dataflow:
    flow = ef.Dataflow(name)
    left = _read(flow, task, "left")
    sink = ef.write_csv(task.output)
    if task.name == "join":
        a = left.rename(seq="a").select("key", "ts", "a").key_by("key")
        b = _read(flow, task, "right").rename(seq="b").select("key", "b").key_by("key")
        a.join(b, ef.between(0, "1s")).rename(ts="t").select("key", "a", "b", "t").write(sink)
    elif task.name == "session":
        sessions = left.key_by("key").window(ef.session("20s")).aggregate(t=ef.max("ts"), n=ef.count(), total=ef.sum("value"))
        sessions.select("key", "t", "n", "total").write(sink)
    else:
        best = left.key_by("key").window(ef.tumbling("10s")).aggregate(best=ef.top(3, by="value"))
        best.map_batches(_in_ms).explode("best").select("key", "t", "value").write(sink)
    return flow


def _read(flow: ef.Dataflow, task: Task, side: str) -> ef.Stream:
    files = ef.read_csv(f"{task.folder}/{side}", column_names=NAMES, schema=TYPES, event_time="ts", max_delay="50ms", name=side)
    return flow.read(files)


def _in_ms(batch: pa.RecordBatch) -> Any:
    """The start of the window as a number of milliseconds."""
    times = pc.cast(pc.cast(batch.column("window_start"), pa.timestamp("ms", "UTC")), pa.int64())
    return batch.append_column("t", times)
