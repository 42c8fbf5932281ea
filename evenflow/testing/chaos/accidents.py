"""Records the kills of a job, and its recovery times: a job has recovered when it completes a checkpoint that began after the kill."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...job import Job
from ...scheduler.protocol.reports import CheckpointState
from ...state.errors import EvenflowError


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill. `at`: seconds since the first look. `change`: the change in progress, `change_kind`: its kind.

    `recovery`: seconds until the job had recovered, None if it has not.
    """

    number: int
    at: float
    kind: str
    victims: str
    change: str = ""
    change_kind: str = ""
    recovery: float | None = None

    def __str__(self) -> str:
        during = f", while {self.change}" if self.change else ""
        return f"{self.at:7.1f} s  kill {self.number}: {self.kind}: {self.victims}{during}"


class OperationTally:
    """The outcomes of a job's changes. Its coordinator keeps the list; a killed coordinator loses it, and its replacement starts another.

    >>> tally = OperationTally()
    >>> for states in (["done"], ["done", "running"], [], ["done"]):
    ...     tally.observe(states)
    >>> str(tally)
    '2 done, 1 running'
    """

    def __init__(self) -> None:
        self._before: Counter[str] = Counter()
        self._now: list[str] = []

    def observe(self, states: Sequence[str]) -> None:
        if len(states) < len(self._now):
            self._before.update(self._now)
        self._now = list(states)

    def __str__(self) -> str:
        counts = self._before + Counter(self._now)
        return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "none"


class Accidents:
    """The accidents of one job. `note` a kill, and `look` often, from any thread."""

    def __init__(self, job: Job) -> None:
        self._job, self._begun = job, time.monotonic()
        self._lock = threading.Lock()
        self._kills: list[Kill] = []
        self._marks: dict[int, int] = {}
        self._attempts: set[int] = set()
        self._scalings, self._migrations = OperationTally(), OperationTally()
        self.zombies = 0
        """Workers that continued after they were declared lost."""

    @property
    def kills(self) -> list[Kill]:
        """The kills, oldest first."""
        with self._lock:
            return list(self._kills)

    @property
    def recovered(self) -> bool:
        """True if the job had recovered from all kills at the last observation."""
        return all(kill.recovery is not None for kill in self.kills)

    def note(self, kind: str, victims: str, change: str, change_kind: str = "") -> Kill:
        """Note a kill that has just happened."""
        kill = Kill(len(self._kills) + 1, time.monotonic() - self._begun, kind, victims, change, change_kind)
        with self._lock:
            self._kills.append(kill)
        return kill

    def note_zombie(self, name: str) -> str:
        """Note a worker that continues after it was declared lost; return a line about it."""
        self.zombies += 1
        return f"{time.monotonic() - self._begun:7.1f} s  zombie {self.zombies}: {name} was declared lost, and wakes"

    def observe(self) -> None:
        """Ask the job for its progress; no answer means no progress."""
        try:
            checkpoints, attempt = self._job.checkpoints(), self._job.status().attempt
            scalings, migrations = self._job.scalings(), self._job.migrations()
        except EvenflowError:
            return
        newest = max((report.number for report in checkpoints), default=0)
        complete = max((report.number for report in checkpoints if report.state is CheckpointState.COMPLETE), default=0)
        now = time.monotonic() - self._begun
        with self._lock:
            self._attempts.add(attempt)
            for index, kill in enumerate(self._kills):
                if kill.recovery is None and complete > self._marks.setdefault(kill.number, newest):
                    self._kills[index] = replace(kill, recovery=now - kill.at)
            self._scalings.observe([report.state.value for report in scalings])
            self._migrations.observe([report.state.value for report in migrations])

    def table(self) -> str:
        """Draw the kills by kind and their recovery times, then the job's other events."""
        kills = self.kills
        header = f"{'killed':<18}{'times':>7}{'went on after, median':>24}{'longest':>11}"
        rows = [_row(kind, [kill for kill in kills if kill.kind == kind]) for kind in sorted({kill.kind for kill in kills})]
        under_way = Counter(kill.change_kind for kill in kills if kill.change_kind)
        other = (
            f"zombies woken: {self.zombies}",
            "killed while: " + (", ".join(f"{kind} {count}" for kind, count in sorted(under_way.items())) or "nothing was under way"),
            f"restarts: {max(0, len(self._attempts) - 1)}",
            f"scalings: {self._scalings}",
            f"migrations: {self._migrations}",
        )
        return "\n".join([header, *rows, _row("all", kills), *other])


def _row(kind: str, kills: Sequence[Kill]) -> str:
    times = [kill.recovery for kill in kills if kill.recovery is not None]
    median, longest = (f"{statistics.median(times):.1f} s", f"{max(times):.1f} s") if times else ("-", "-")
    return f"{kind:<18}{len(kills):>7}{median:>24}{longest:>11}"
