"""T2 as a plain Python loop with a dict, in two processes with half of the keys each: the baseline for the overhead of any engine.

The time includes building the row dicts, the calls and writing. Decoding the files and turning columns into lists is not measured.
"""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..harness.task import Answer, Task
from .evenflow import alert
from .results import result_of_alerts

PROCESSES = 2
WAIT = 600.0


def run(task: Task) -> Iterator[Answer]:
    """Run both processes for each iteration."""
    context = multiprocessing.get_context("spawn")
    for _ in range(task.repeat):
        shutil.rmtree(task.output, ignore_errors=True)
        Path(task.output).mkdir(parents=True)
        ready = context.Barrier(PROCESSES + 1)
        workers = [context.Process(target=work, args=(task, index, ready)) for index in range(PROCESSES)]
        for worker in workers:
            worker.start()
        ready.wait(WAIT)
        begun = time.monotonic()
        ready.wait(WAIT)
        seconds = time.monotonic() - begun
        for worker in workers:
            worker.join(WAIT)
        yield Answer(seconds, task.rows, result_of_alerts(task.output))


def work(task: Task, index: int, ready: Barrier) -> None:
    """Decode the columns of this process's keys, then run the loop between the two meetings."""
    columns = columns_of(task.files, index, PROCESSES)
    ready.wait(WAIT)
    pq.write_table(pa.Table.from_pylist(loop(columns)), f"{task.output}/part-{index}.parquet")
    ready.wait(WAIT)


def columns_of(files: list[str], index: int, processes: int) -> dict[str, list[Any]]:
    """Return the columns of the rows whose key modulo `processes` is `index`, in the files' order."""
    table = pq.read_table(files)
    keys = table.column("key").to_numpy()
    mine = table.filter(pa.array(keys % processes == index))
    return {name: pc.drop_null(mine.column(name)).to_numpy().tolist() for name in mine.column_names}


def loop(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Run the task without an engine."""
    states: dict[Any, Any] = {}
    alerts = []
    for key, ts, value in zip(columns["key"], columns["ts"], columns["value"], strict=True):
        states[key], result = alert(states.get(key), {"key": key, "ts": ts, "value": value})
        if result is not None:
            alerts.append(result)
    return alerts
