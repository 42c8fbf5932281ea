"""Measures how long a job takes to recover, by the changes of its state.

>>> downtime = Downtime()
>>> for now, state in enumerate([JobState.RUNNING, JobState.RESTARTING, JobState.RUNNING]):
...     print(downtime.note_state(state, float(now)))
None
None
(1.0, 2.0)
"""

from __future__ import annotations

from ...scheduler.protocol.effects import JobState


class Downtime:
    """The downtimes of one job, each from the failure until all workers run again."""

    def __init__(self) -> None:
        self._since: float | None = None

    def note_state(self, state: JobState, now: float) -> tuple[float, float] | None:
        """Note that the job's state has changed at time `now`; return begin and end of a recovery that ends with it."""
        since = self._since
        if state is JobState.RESTARTING and since is None:
            self._since = now
        elif state is not JobState.RESTARTING and since is not None:
            self._since = None
            return None if state.final else (since, now)
        return None
