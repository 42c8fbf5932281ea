"""The partial matches of one key, advanced row by row: a nondeterministic automaton with a list of rows for each of its runs.

The model is that of Agrawal et al., "Efficient pattern matching over event streams" (SIGMOD 2008). Rows are numbers that rise with
their order. A run is a list, so that it can be saved: `[path, places, count, loops, goes]`. `path` has the matched rows; `places` the
step of each, among those that match rows; `count` the rows of the newest of these steps; `loops` is true while one more row of this
step may follow, `goes` while the next step, or the end of `within`, may.

Matches are found in the order of their first row, then of their last row; of several with the same ones, the first is the one that
matches earlier rows. A match waits for partial matches that began before it, because these may skip it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .pattern import Pattern
from .step import Contiguity

Holds = Callable[[int, int, Sequence[int], Sequence[int]], bool]
"""`holds(step, row, path, places)`: True if the row meets the condition of a step (a place in the pattern), given the rows before it."""

Found = tuple[list[int], list[int], int]
"""A match: its path, the steps of its rows, and the event time at which it was decided."""


class Runs:
    """The runs of one key. `runs`, `held`: the partial matches, and the matches that wait; `times`: the event time of each row in them."""

    def __init__(self, pattern: Pattern, runs: list[Any], held: list[Any], times: dict[int, int], holds: Holds) -> None:
        self.runs, self.held, self.times = runs, held, times
        self.found: list[Found] = []
        self._pattern, self._holds = pattern, holds
        self._last = len(pattern.present) - 1
        self._complete: list[Any] = []

    @property
    def size(self) -> int:
        """Return the number of rows in all partial matches, a row counted in each."""
        return sum(len(run[0]) for run in self.runs) + sum(len(path) for path, _ in self.held)

    @property
    def expiry(self) -> int | None:
        """Return the earliest time at which `within` is over for a run; None without runs."""
        first = min((self.times[run[0][0]] for run in self.runs), default=None)
        return None if first is None else first + self._pattern.within

    def take(self, row: int, time: int) -> None:
        """Take the next row."""
        self.expire(time)
        self.times[row] = time
        before, self.runs = self.runs, []
        for run in before:
            self._step(run, row)
        if self._holds(self._pattern.present[0], row, (), ()):
            self._begin([row], [0], 1)
        self._settle(time)

    def expire(self, until: int) -> None:
        """End the runs whose `within` is over at `until`. Those that wait for nothing but the absence of rows are matches."""
        while (at := self.expiry) is not None and at <= until:
            start = at - self._pattern.within
            over = [run for run in self.runs if self.times[run[0][0]] == start]
            self.runs = [run for run in self.runs if self.times[run[0][0]] != start]
            self._complete += [[path, places] for path, places, _, _, goes in over if goes and places[-1] == self._last]
            self._settle(at)

    def _step(self, run: Any, row: int) -> None:
        """Advance a run by a row: the run itself waits on where it may, and each step that the row matches makes a longer one."""
        path, places, count, loops, goes = run
        place = places[-1]
        if loops:
            current = self._pattern.present[place]
            matches = self._holds(current, row, path, places)
            if matches:
                self._begin([*path, row], [*places, place], count + 1)
            loops = _waits(self._pattern.steps[current].repeats, matches)
        if goes:
            if place < self._last:
                following = self._pattern.present[place + 1]
                matches = self._holds(following, row, path, places)
                if matches:
                    self._begin([*path, row], [*places, place + 1], 1)
                goes = _waits(self._pattern.steps[following].contiguity, matches)
            goes = goes and not any(self._holds(absent, row, path, places) for absent in self._pattern.absent_after[place])
        if loops or goes:
            self.runs.append([path, places, count, loops, goes])

    def _begin(self, path: list[int], places: list[int], count: int) -> None:
        """Add the run with one more row."""
        place = places[-1]
        step = self._pattern.steps[self._pattern.present[place]]
        loops, goes = step.most is None or count < step.most, count >= step.least
        if goes and place == self._last and not self._pattern.absent_after[place]:
            self._complete.append([path, places])
            goes = False
        if loops or goes:
            self.runs.append([path, places, count, loops, goes])

    def _settle(self, at: int) -> None:
        """Emit the complete matches that no partial match can skip, in order, and skip what they say."""
        if self._complete:
            self.held = sorted([*self.held, *self._complete], key=_order)
            self._complete = []
        if not self.held:
            return
        if self._pattern.skip == "no_skip":
            self.found += [(path, places, at) for path, places in self.held]
            self.held = []
            return
        earliest = min((run[0][0] for run in self.runs), default=None)
        while self.held and (earliest is None or self.held[0][0][0] <= earliest):
            path, places = self.held.pop(0)
            self.found.append((path, places, at))
            resumes = self._pattern.resumes_at(path, places)
            self.held = [match for match in self.held if match[0][0] >= resumes]
            self.runs = [run for run in self.runs if run[0][0] >= resumes]
            earliest = min((run[0][0] for run in self.runs), default=None)


def _waits(contiguity: Contiguity, matches: bool) -> bool:
    """Return True if a run still waits for a row behind one that matches or not."""
    return contiguity == "followed_by_any" or (contiguity == "followed_by" and not matches)


def _order(match: Any) -> tuple[int, int, list[int], list[int]]:
    path, places = match
    return path[0], path[-1], path, places
