"""`evenflow logs JOB [WORKER]`: show the output of a running job's processes, on all nodes."""

from __future__ import annotations

import argparse
import time

from ..engine.errors import JobError, RequestError
from .arguments import add_job

EVERY = 1.0


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the job, one of its workers, and the number of lines."""
    add_job(parser)
    parser.add_argument("worker", nargs="?", metavar="WORKER", help="for example aggregate-1, or coordinator (default: all)")
    parser.add_argument("--lines", type=int, default=50, metavar="N", help="the last N of each stream (default: %(default)s)")
    parser.add_argument("--follow", action="store_true", help="follow the output, until the job ends or Ctrl-C")


def run(arguments: argparse.Namespace) -> int:
    """Print the output. Raises JobNotRunningError if no such job runs, RequestError for an unknown worker."""
    from .. import connect
    from ..actors.processes.process_output import read_output
    from ..terminal.console import console, data

    job, terminal = connect(arguments.job), console()
    ends: dict[tuple[str, str], int] = {}
    last = None
    while True:
        try:
            status = job.status()
        except JobError:  # it ends while it is followed
            if not ends:
                raise
            return 0
        names = {"coordinator": f"{job.name}/coordinator"}
        names.update((worker, place.process) for worker, place in status.places.items())
        if arguments.worker is not None:
            if arguments.worker not in names:
                raise RequestError(f"the job `{job.name}` has no worker `{arguments.worker}`; there are: {', '.join(names)}")
            names = {arguments.worker: names[arguments.worker]}
        for part in read_output(names, arguments.lines, ends):
            ends[part.whose, part.stream] = part.end
            if part.text:
                if last != (part.whose, part.stream):
                    terminal.print(data(f"== {job.name}/{part.whose} {part.stream} {part.path}"), soft_wrap=True)
                    last = part.whose, part.stream
                terminal.print(data(part.text.rstrip("\n")), soft_wrap=True)
        if not arguments.follow or status.state.final:
            return 0
        time.sleep(EVERY)
