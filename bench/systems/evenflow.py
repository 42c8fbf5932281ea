"""evenflow on Ray with two workers per operator; the time is from when all workers run until the job has ended."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evenflow as ef

from ...testing.settings import changed
from ..machine import CpuWatch, MemoryPeak
from ..task import THRESHOLD, Answer, Task, result_of_alerts, result_of_windows

WAIT = "600s"


def run(task: Task) -> Iterator[Answer]:
    """`options["config"]`: per iteration, what its JobConfig has besides two workers (default: nothing)."""
    for number, settings in enumerate(task.options.get("config") or [{}] * task.repeat):
        shutil.rmtree(task.output, ignore_errors=True)
        config = changed(ef.JobConfig(parallelism=2), **settings)
        job = flow_of(task, f"bench-{task.name}-{number}").run(config=config)
        begun = job.status().running_seconds
        with CpuWatch() as cpu, MemoryPeak() as memory:
            job.wait(WAIT)
        seconds = job.status().running_seconds - begun
        workers = {f.worker: {"rows_in": f.rows_in, "rows_out": f.rows_out, "late": f.late_records} for f in job.metrics()}
        yield Answer(seconds, task.rows, result_of(task), {"cpu_seconds": cpu.seconds, "memory": memory.bytes, "workers": workers})


def flow_of(task: Task, name: str) -> ef.Dataflow:
    """The task as a dataflow."""
    flow = ef.Dataflow(name)
    stream = flow.read(ef.read_parquet(task.folder, event_time="ts", unit="ms", max_delay="50ms"))
    sink = ef.write_parquet(task.output, compression="snappy")
    if task.name.startswith("t1"):
        stream.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count(), total=ef.sum("value")).write(sink)
        return flow
    # One reader, so that the rows of a key come in the files' order and the alerts can be compared.
    keyed = stream.parallelism(1).key_by("key")
    if task.name == "t2":
        keyed.stateful_map(alert).write(sink)
    else:
        keyed.stateful_map_columns(alert_columns, state={"n": "int64", "total": "float64"}, columns=["key", "value"]).write(sink)
    return flow


def alert(state: tuple[int, float] | None, row: dict[str, Any]) -> tuple[tuple[int, float], dict[str, Any] | None]:
    """A running mean per key; a row far above it is an alert."""
    n, total = state or (0, 0.0)
    value = row["value"]
    n, total = n + 1, total + value
    if value > THRESHOLD * total / n:
        return (n, total), {"key": row["key"], "value": value, "mean": total / n}
    return (n, total), None


def alert_columns(state: dict[str, Any], rows: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same, a batch at a time."""
    n, total = rows.running_count(state["n"]), rows.running_sum("value", state["total"])
    mean = total / n
    return {"n": rows.last(n), "total": rows.last(total)}, rows.where(rows["value"] > THRESHOLD * mean, mean=mean)


def result_of(task: Task) -> dict[str, float]:
    """What the task wrote."""
    if task.name.startswith("t1"):
        return result_of_windows(str(Path(task.output)), "epoch_ms(window_start)", task.last_window)
    return result_of_alerts(task.output)
