"""evenflow, on Ray with two workers per operator or in one thread. The time runs from when all workers run until the job has ended."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import evenflow as ef

from ..harness.jobs import timed
from ..harness.task import Answer, Task
from .results import THRESHOLD, result_of_alerts, result_of_windows

WAIT = 600.0


def run(task: Task) -> Iterator[Answer]:
    """Run a job for each iteration. `options["runtime"]`: "ray" or "local"; `options["balancers"]`: in turn, by default hotspot."""
    runtime, balancers = task.options["runtime"], task.options.get("balancers", ["hotspot"])
    for number in range(task.repeat):
        shutil.rmtree(task.output, ignore_errors=True)
        flow = flow_of(task, f"bench-{runtime}-{task.name}-{number}")
        balance = ef.BalanceConfig(balancers[number % len(balancers)])
        job = flow.run(runtime=runtime, config=ef.JobConfig(parallelism=1 if runtime == "local" else 2, balance=balance))
        seconds, cpu = timed(job, WAIT)
        yield Answer(seconds, task.rows, result_of(task), {"cpu_seconds": cpu})


def flow_of(task: Task, name: str) -> ef.Dataflow:
    """Return the task as a dataflow."""
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
    """Keep a running mean per key, and emit a row that is far above it."""
    n, total = state or (0, 0.0)
    value = row["value"]
    n, total = n + 1, total + value
    if value > THRESHOLD * total / n:
        return (n, total), {"key": row["key"], "value": value, "mean": total / n}
    return (n, total), None


def alert_columns(state: dict[str, Any], rows: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Do the same as `alert` for a batch."""
    n, total = rows.running_count(state["n"]), rows.running_sum("value", state["total"])
    mean = total / n
    return {"n": rows.last(n), "total": rows.last(total)}, rows.where(rows["value"] > THRESHOLD * mean, mean=mean)


def result_of(task: Task) -> dict[str, float]:
    """Return the result that the task wrote."""
    if task.name.startswith("t1"):
        return result_of_windows(task.output, "epoch_ms(window_start)", task.last_window)
    return result_of_alerts(task.output)
