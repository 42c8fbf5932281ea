"""`evenflow record JOB FILE`: follow a job until it has ended, and write its views into a file."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from .arguments import add_job


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the job and the file."""
    add_job(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="a new file; see it with `evenflow ui --replay FILE`")


def run(arguments: argparse.Namespace) -> int:
    """Record until the job has ended, or Ctrl-C.

    Raises JobNotRunningError if no such job runs, ConnectorError if the file can't be written.
    """
    from ..actors.cluster import find_job
    from ..job import Job
    from ..recording.file import RecordingWriter
    from ..scheduler.protocol.view import JobView
    from ..terminal.console import console
    from ..views.polling import poll_views

    runtime = find_job(arguments.job)
    job = Job(arguments.job, runtime, {}, {})  # its thread waits for the job's end, after which the runtime refuses to answer
    with RecordingWriter(arguments.file, arguments.job, time.time()) as recording:
        console().print(f"recording {arguments.job} into {arguments.file}; Ctrl-C ends the recording, not the job")
        last = None
        for view in poll_views(runtime):
            if isinstance(view, JobView):
                recording.add(view)
                last = view
        if last is not None:
            recording.add(replace(last, now=time.time(), status=job.status(), windows=()))
    console().print(f"{arguments.job} has ended: it is {job.status().state.value}; see it with: evenflow ui --replay {arguments.file}")
    return 0
