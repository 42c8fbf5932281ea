"""NexMark's queries in evenflow on Ray with two workers per operator; the time is from when all workers run until the job has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import evenflow as ef

from ..machine import CpuWatch
from ..nexmark.data import EventFiles
from ..nexmark.queries import QUERIES
from ..nexmark.streams import read_events
from ..nexmark.topics import EventTopics
from ..sinks import DiscardSink
from ..task import Answer, Task

WAIT = 3000.0
LOOK = "500ms"
"""Time between two looks at how much state the workers hold."""


def run(task: Task) -> Iterator[Answer]:
    """A job for each iteration, whose rows are discarded, and one that writes them to `task.output`.

    `options`: `input`, one of `INPUTS`; `events`, their number; `checked`, the folder of the events that the last job reads, and
    `checked_events`, their number. Where the input is Kafka, `topics` has the `EventTopics` of both.
    """
    form = task.options["input"]
    measured, checked = _inputs(task)
    for number in range(task.repeat):
        job = _started(task.name, f"{task.name}-{number}", measured, form, DiscardSink())
        begun = job.status().running_seconds
        with CpuWatch() as cpu:
            state_bytes = _largest_state(job)
        yield Answer(job.status().running_seconds - begun, task.rows, {}, {"cpu_seconds": cpu.seconds, "state_bytes": state_bytes})
    _started(task.name, f"{task.name}-checked", checked, form, ef.write_parquet(task.output)).wait(WAIT)


def _largest_state(job: ef.Job) -> int:
    """Wait for the end of the job; the most bytes of keyed state that its workers told of in one look, by their own estimate."""
    deadline, largest = time.monotonic() + WAIT, 0
    while True:
        try:
            job.wait(LOOK)
        except ef.JobTimeoutError:
            if time.monotonic() > deadline:
                raise
            largest = max(largest, _state_bytes(job))
        else:
            return max(largest, _state_bytes(job))


def _state_bytes(job: ef.Job) -> int:
    return sum(figures.state_bytes for figures in job.metrics())


def _inputs(task: Task) -> tuple[EventFiles | EventTopics, EventFiles | EventTopics]:
    """The measured events and the checked ones."""
    given = task.options
    if "topics" in given:
        measured, checked = (EventTopics(**each) for each in given["topics"])
        return measured, checked
    return EventFiles(Path(task.folder), given["events"]), EventFiles(Path(given["checked"]), given["checked_events"])


def _started(query: str, name: str, events: EventFiles | EventTopics, form: str, sink: ef.Sink) -> ef.Job:
    flow = ef.Dataflow(name)
    QUERIES[query](read_events(flow, events, form)).write(sink)
    return flow.run(config=ef.JobConfig(parallelism=2))
