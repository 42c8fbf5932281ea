"""`evenflow top JOB`: a live picture of a job as text: rates, key groups, loads against the floor, decisions; q ends it."""

from __future__ import annotations

import argparse
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..engine.errors import JobError
from .arguments import add_job


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the job, the refresh interval, and the option to show it only once."""
    add_job(parser)
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="default: %(default)s")
    parser.add_argument("--once", action="store_true", help="print one picture and exit")


def run(arguments: argparse.Namespace) -> int:
    """Show the job until q is pressed or it has ended. Raises JobNotRunningError if no such job runs."""
    from rich.live import Live

    from .. import connect
    from ..job import monitor_of
    from ..terminal.console import console
    from ..terminal.top import frame

    job, terminal = connect(arguments.job), console()
    monitor = monitor_of(job)
    if arguments.once:
        terminal.print(frame(monitor.poll()))
        return 0
    with keys_at_once(), Live(console=terminal, screen=terminal.is_terminal, auto_refresh=False) as live:
        while not monitor.ended:
            with suppress(JobError):  # the job may end between two requests
                live.update(frame(monitor.poll()), refresh=True)
            if pressed_q(max(arguments.interval, 0.1)):
                return 0
    terminal.print(f"{job.name} has ended: it is {job.status().state.value}")
    return 0


@contextmanager
def keys_at_once() -> Iterator[None]:
    """Deliver keys as they are pressed, without echo. Does nothing if the input is no terminal."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def pressed_q(wait: float) -> bool:
    """Wait for `wait` seconds at most; return True if q was pressed."""
    if not sys.stdin.isatty():
        time.sleep(wait)
        return False
    ready, _, _ = select.select([sys.stdin], [], [], wait)
    return bool(ready) and sys.stdin.read(1) in ("q", "Q")
