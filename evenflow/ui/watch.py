"""Follows one job from the process that asks, for the terminal, notebooks and programs; the page has a process of its own.

Invariant: all that is told comes from the job's own views and from `History`, so that every picture of a job says the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..engine.errors import JobNotRunningError
from ..scheduler.protocol.requests import ShowView
from ..scheduler.protocol.view import JobView
from .history import History, Message
from .stage_history import NEWEST

if TYPE_CHECKING:
    from ..job import Job

OVERLAP = NEWEST + 1.0
"""Seconds that the questions overlap, so that every view has all windows of the newest seconds."""


@dataclass(frozen=True, slots=True)
class Seen:
    """`view`: the job as it is now, with the windows of the newest seconds at least. `told`: all that is known,
    as the page gets it.
    """

    view: JobView
    told: Message


class Watch:
    """Follows `job`: each `look` asks it once."""

    def __init__(self, job: Job) -> None:
        self._job, self._history, self._since = job, History(job.name), 0.0
        self.last: Seen | None = None
        """What was seen last."""

    def look(self) -> Seen:
        """Raises JobNotRunningError once the job has ended."""
        view = self._job._runtime.ask(ShowView(self._since))  # noqa: SLF001 -- a question that only pictures ask
        self._since = view.now - OVERLAP
        self._history.add(view)
        self.last = Seen(view, self._history.whole())
        return self.last

    def look_back(self) -> Seen:
        """As `look`, but of a job that has ended what was seen last. Raises JobNotRunningError if that is nothing."""
        try:
            return self.look()
        except JobNotRunningError:
            if self.last is None:
                raise
            return self.last
