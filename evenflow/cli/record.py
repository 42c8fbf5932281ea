"""`evenflow record JOB FILE`: follow a job until it has ended, and write what it does into a file."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_job

if TYPE_CHECKING:
    from ..actors.cluster import WatchedJob
    from ..recording.file import RecordingWriter
    from ..scheduler.job.view import JobView

EVERY = 1.0
"""Seconds from one question to the job's coordinator to the next."""

OVERLAP = 3.0
"""Seconds that the questions overlap, for windows that are still on their way to the coordinator."""


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """The job and the file."""
    add_job(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="a new file; see it with `evenflow ui --replay FILE`")


def run(arguments: argparse.Namespace) -> int:
    """Record until the job has ended, or Ctrl-C. Raises JobNotRunningError if no such job runs, ConnectorError if the file can't be written."""
    from ..actors.cluster import find_job
    from ..drawing.terminal import console
    from ..engine.errors import JobNotRunningError
    from ..job import Job
    from ..recording.file import RecordingWriter

    runtime = find_job(arguments.job)
    job = Job(arguments.job, runtime, {}, {})  # its thread waits for the job's end, after which the runtime refuses to ask
    with RecordingWriter(arguments.file, arguments.job, time.time()) as recording:
        console().print(f"recording {arguments.job} into {arguments.file}; Ctrl-C ends that, and not the job")
        last: list[JobView] = []
        with suppress(JobNotRunningError):
            _follow(runtime, recording, last)
        status = job.status()
        for view in last:  # how it has ended
            recording.add(replace(view, now=time.time(), status=status, windows=()))
    console().print(f"{arguments.job} has ended: it is {status.state.value}; see it with: evenflow ui --replay {arguments.file}")
    return 0


def _follow(runtime: WatchedJob, recording: RecordingWriter, last: list[JobView]) -> None:
    """Until the job has ended; `last` then has its newest view."""
    from ..engine.errors import JobTimeoutError
    from ..scheduler.job.requests import ShowView

    since = 0.0
    while True:
        begun = time.monotonic()
        with suppress(JobTimeoutError):  # a coordinator that is busy or restarts answers later
            view = runtime.ask(ShowView(since))
            since = view.now - OVERLAP
            recording.add(view)
            last[:] = [view]
        time.sleep(max(0.0, begun + EVERY - time.monotonic()))
