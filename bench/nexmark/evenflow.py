"""NexMark's queries in evenflow on Ray with two workers per operator. The time runs from when all workers run until the job has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import evenflow as ef

from ..harness.machine import CpuWatch
from ..harness.sinks import DiscardSink
from ..harness.task import Answer, Task
from .data import EventFiles
from .queries import QUERIES
from .sql import in_sql
from .streams import read_events

WAIT = 3000.0
SAMPLE = "500ms"
"""Time between two measurements of the workers' state."""

BY_ARRIVAL = ("q18",)
"""Queries whose text leaves it to the order of arrival which of two bids of the same time counts. It is defined within a CSV file only."""


def run(task: Task) -> Iterator[Answer]:
    """Run a job for each iteration, whose rows are discarded, and one that writes them to `task.output`.

    `options`: `input`, one of `INPUTS`; `events`, their number; `checked`, the folder of the events that the last job reads, and
    `checked_events`, their number; `sql`: run the query's text, not its flow; `balancers`: in turn, by default hotspot.
    """
    given = task.options
    balancers = given.get("balancers", ["hotspot"])
    for number in range(task.repeat):
        events = EventFiles(Path(task.folder), given["events"])
        job = _start(task, f"{task.name}-{number}", events, DiscardSink(), given["input"], balancers[number % len(balancers)])
        begun = job.status().running_seconds
        with CpuWatch() as cpu:
            state_bytes = _largest_state(job)
        yield Answer(job.status().running_seconds - begun, task.rows, {}, {"cpu_seconds": cpu.seconds, "state_bytes": state_bytes})
    checked = EventFiles(Path(given["checked"]), given["checked_events"])
    form = "csv" if task.name in BY_ARRIVAL else given["input"]
    _start(task, f"{task.name}-checked", checked, ef.write_parquet(task.output), form).wait(WAIT)


def _start(task: Task, name: str, events: EventFiles, sink: ef.Sink, form: str, balancer: str = "hotspot") -> ef.Job:
    flow = ef.Dataflow(name)
    read = read_events(flow, events, form)
    (in_sql(task.name, read) if task.options["sql"] else QUERIES[task.name](read)).write(sink)
    return flow.run(config=ef.JobConfig(parallelism=2, balance=ef.BalanceConfig(balancer)))


def _largest_state(job: ef.Job) -> int:
    """Wait for the end of the job; returns the most bytes of keyed state that its workers reported at a time, by their own estimate."""
    deadline, largest = time.monotonic() + WAIT, 0
    while True:
        try:
            job.wait(SAMPLE)
        except ef.JobTimeoutError:
            if time.monotonic() > deadline:
                raise
            with suppress(ef.JobLostError):  # it has ended since
                largest = max(largest, _state_bytes(job))
        else:
            return max(largest, _state_bytes(job))


def _state_bytes(job: ef.Job) -> int:
    return sum(figures.state_bytes for figures in job.metrics())
