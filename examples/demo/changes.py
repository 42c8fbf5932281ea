"""The changes of the second act: a worker joins, and new code comes, each when its phase begins; then the stream ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import evenflow as ef

SOURCE = "departures"
WORKERS = 3
CANARY, WATCH = 0.1, "4s"
EVERY = 0.3
"""Seconds between two looks at how far the source is."""

WAIT = "5m"


class Changes:
    """A context during which the job changes; afterwards `made` describes the changes, and `complete` is True if there were two.

    `join_at`, `upgrade_at`: the rows that the source has emitted when a worker joins, and when `upgrade` replaces the code. After `end_at`
    rows, and not before both changes are made, the stream ends.
    """

    def __init__(self, job: ef.Job, operator: str, upgrade: ef.Dataflow, *, join_at: int, upgrade_at: int, end_at: int) -> None:
        self._job, self._operator, self._upgrade = job, operator, upgrade
        self._join_at, self._upgrade_at, self._end_at = join_at, upgrade_at, end_at
        self._thread = threading.Thread(target=self._change, name="changes", daemon=True)
        self.made: list[str] = []
        self.complete = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._thread.join()

    def _change(self) -> None:
        try:
            if self._reached(self._join_at):
                self.made.append(str(self._when_free(lambda: self._job.scale(self._operator, WORKERS, timeout=WAIT))))
            if self._reached(self._upgrade_at):
                self.made.append(str(self._when_free(lambda: self._job.upgrade(self._upgrade, canary=CANARY, watch=WATCH))))
                self.complete = True
            if self._reached(self._end_at):
                self._job.stop(drain=True)
        except ef.JobError as error:  # the stream has ended before
            self.made.append(str(error))

    def _when_free(self, change: Callable[[], object]) -> object:
        """Make a change, again and again while the balancer is moving keys."""
        wait = threading.Event()
        while True:
            try:
                return change()
            except ef.JobBusyError:
                wait.wait(EVERY)

    def _reached(self, rows: int) -> bool:
        """Wait until the source has emitted so many rows; return False if the job has ended."""
        wait = threading.Event()
        while not self._job.status().state.final:
            if emitted(self._job) >= rows:
                return True
            wait.wait(EVERY)
        return False


def emitted(job: ef.Job) -> int:
    """Return the rows that the source has emitted."""
    return sum(worker.rows_out for worker in job.metrics() if worker.operator == SOURCE)
