"""A plain Python loop with a dict, in two processes that have half of the keys each: the baseline for the overhead of any engine.

Decoding the files and turning columns into lists is outside the time; building the row dicts, the calls and writing are inside.
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

from ..task import Answer, Task, result_of_alerts
from .evenflow import alert

PROCESSES = 2
WAIT = 600.0


def run(task: Task) -> Iterator[Answer]:
    """T2 only."""
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
    """One process: its keys' columns as lists, then the loop between the two meetings."""
    columns = columns_of(task.files, index, PROCESSES)
    ready.wait(WAIT)
    pq.write_table(pa.Table.from_pylist(loop(columns)), f"{task.output}/part-{index}.parquet")
    ready.wait(WAIT)


def columns_of(files: list[str], index: int, processes: int) -> dict[str, list[Any]]:
    """The columns of the rows whose key modulo `processes` is `index`, in the files' order."""
    table = pq.read_table(files)
    keys = table.column("key").to_numpy()
    mine = table.filter(pa.array(keys % processes == index))
    return {name: pc.drop_null(mine.column(name)).to_numpy().tolist() for name in mine.column_names}


def loop(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """The task without an engine."""
    states: dict[Any, Any] = {}
    alerts = []
    for key, ts, value in zip(columns["key"], columns["ts"], columns["value"], strict=True):
        states[key], result = alert(states.get(key), {"key": key, "ts": ts, "value": value})
        if result is not None:
            alerts.append(result)
    return alerts
