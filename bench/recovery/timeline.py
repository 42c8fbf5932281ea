"""The timeline of a recovery: what happened when between a kill and the first new output.

The times are those of the steps that the job's processes logged (`actors/attempt_log.py`), and of the benchmark's source and sink, by
the wall clock of one machine. A step is over when the last process has taken it; a phase is the time that a step adds to those
before it, so the phases add up to the time of the recovery.

>>> lines = '''2026-01-02 00:00:01,500 INFO evenflow.attempts: job `j`, attempt 1, coordinator: worker `a-1` lost
... 2026-01-02 00:00:01,600 INFO evenflow.attempts: job `j`, attempt 2, coordinator: begun'''
>>> taken = steps(lines)
>>> line(phases(taken[0].at - 0.5, taken))
'noticed 500, begun 100'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import evenflow as ef

from ...actors.attempt_log import STEP
from ...actors.processes.process_output import read_output
from ..harness.record import Case, Run

ORDER = (
    "coordinator there", "noticed", "begun", "sinks restored", "manifest read", "processes checked", "processes acquired", "process there",
    "earlier run ended", "task created", "state restored", "channels connected", "tasks started", "first input", "first output",
    "first new output",
)  # fmt: skip
"""The steps in the order in which an attempt takes them."""

LEAST_SHARE = 0.01
"""The least part of a recovery that a phase must take to be drawn."""

_LINES = 10_000

_BETWEEN = "/until "
"""Between the kind of a kill and the step that ends a phase, in the names of cases."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step that a process took `at` a time, in seconds since the epoch."""

    at: float
    what: str


@dataclass(frozen=True, slots=True)
class Phase:
    """The seconds that a step added to those before it."""

    what: str
    seconds: float


def steps(log: str) -> list[Step]:
    """Return the steps in the output of a process, by time."""
    found = [(datetime.strptime(at, "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp(), what) for at, what in STEP.findall(log)]
    return [Step(at, "noticed" if what.endswith(" lost") else what) for at, what in sorted(found)]


def steps_of(job: ef.Job) -> list[Step]:
    """Return the steps of a running job's processes, in the order of their output."""
    names = {"coordinator": f"{job.name}/coordinator"} | {worker: place.process for worker, place in job.status().places.items()}
    return [step for part in read_output(names, _LINES, {}) for step in steps(part.text)]


def phases(killed: float, taken: Iterable[Step]) -> tuple[Phase, ...]:
    """Return the phases after a kill (seconds since the epoch) up to the last of the known steps that were taken."""
    last = dict[str, float]()
    for step in taken:
        if step.at >= killed - 0.001:  # the log has milliseconds
            last[step.what] = max(last.get(step.what, killed), step.at)
    found, until = list[Phase](), killed
    for what in ORDER:
        if what in last:
            found.append(Phase(what, max(0.0, last[what] - until)))
            until = max(until, last[what])
    return tuple(found)


def line(found: Iterable[Phase]) -> str:
    """Return the phases in a line.

    >>> line([Phase("noticed", 0.0123), Phase("begun", 0.1)])
    'noticed 12, begun 100'
    """
    return ", ".join(f"{phase.what} {1000 * phase.seconds:.0f}" for phase in found)


def cases(name: str, recoveries: Sequence[Sequence[Phase]]) -> list[Case]:
    """Return a case for each phase that all recoveries of a kind have."""
    seconds = [{phase.what: phase.seconds for phase in found} for found in recoveries]
    there = [what for what in ORDER if all(what in found for found in seconds)]
    return [Case(f"{name}{_BETWEEN}{what}", "s", "lower", tuple(found[what] for found in seconds)) for what in there]


def medians_of(run: Run) -> dict[str, dict[str, float]]:
    """Return the median of each phase by kind of kill."""
    found = dict[str, dict[str, float]]()
    for case in run.cases:
        kind, between, what = case.name.partition(_BETWEEN)
        if between:
            found.setdefault(kind, {})[what] = case.median
    return found


def draw(kinds: Mapping[str, Mapping[str, float]], axes: Any) -> None:
    """Draw the phases of each kind of kill, one behind the other."""
    names = list(kinds)[::-1]
    begins = dict.fromkeys(names, 0.0)
    shown = [what for what in ORDER if any(kinds[name].get(what, 0.0) >= LEAST_SHARE * sum(kinds[name].values()) for name in names)]
    for place, what in enumerate(shown):
        widths = [kinds[name].get(what, 0.0) for name in names]
        axes.barh(names, widths, left=list(begins.values()), color=f"C{place % 10}", alpha=1.0 if place < 10 else 0.5, label=what)
        begins = {name: begins[name] + width for name, width in zip(names, widths, strict=True)}
    axes.set_xlabel("seconds from the kill, medians of each phase")
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.3), ncols=4, fontsize="x-small")
