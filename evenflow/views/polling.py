"""Polls a running job for its views: one request to its coordinator each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ..engine.errors import JobNotRunningError, JobTimeoutError
from ..scheduler.job.view_cursor import ViewCursor
from ..scheduler.protocol.requests import Responder, ShowStatus, ShowView
from ..scheduler.protocol.view import JobView
from .history import History

EVERY = 1.0
"""Seconds from one request to the next."""


def poll_views(job: Responder, sleep: Callable[[float], None] | None = None) -> Iterator[JobView | JobTimeoutError]:
    """Yield a view a second until the job has ended. An error stands for a coordinator that did not answer in time; it is asked again.

    `sleep` waits between two requests, by default `time.sleep`. Raises JobLostError if the coordinator is lost.
    """
    cursor = ViewCursor()
    while True:
        begun = time.monotonic()
        try:
            view = job.ask(ShowView(cursor.since))
        except JobTimeoutError as error:
            yield error
            continue
        except JobNotRunningError:
            return
        cursor.advance(view)
        yield view
        (sleep or time.sleep)(max(0.0, begun + EVERY - time.monotonic()))


class JobMonitor:
    """The history of one job, which grows by a view whenever it is polled: for terminals, notebooks and programs."""

    def __init__(self, name: str, job: Responder) -> None:
        self._job, self._history = job, History(name)

    @property
    def ended(self) -> bool:
        """True if the job has ended."""
        return self._job.ask(ShowStatus()).state.final

    def poll(self) -> History:
        """Add the job's present view to its history. Raises JobNotRunningError once the job has ended."""
        self._history.add(self._job.ask(ShowView(self._history.since)))
        return self._history

    def last(self) -> History:
        """Poll the job, or return its last history if it has ended. Raises JobNotRunningError if it was never polled."""
        try:
            return self.poll()
        except JobNotRunningError:
            if not self._history.snapshots.has_view:
                raise
            return self._history
