"""Begins changes of a running job just before a kill: keys move by any strategy, operators are scaled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from ...balancer.strategies import STRATEGIES
from ...engine.protocol.ids import stage_of
from ...engine.time.duration import Duration
from ...job import Job

IN_PEACE: Duration = "60s"
"""The most time of a change that must end before the disturbed one begins."""


class ChaosChanges:
    """Changes of the operators `move` and `scale`, which are scaled between one worker and `most_workers`, in one step."""

    def __init__(self, job: Job, move: Sequence[str], scale: Sequence[str], most_workers: int) -> None:
        self._job, self._moved, self._scaled = job, move, scale
        self._begin: dict[str, Callable[[Random], str]] = {}
        if move:
            self._begin |= {f"keys move by {strategy}": partial(self._move, strategy) for strategy in STRATEGIES}
        if scale:
            for before, after in ((most_workers, 1), (1, most_workers)):
                self._begin[f"scaled from {before} to {after}"] = partial(self._scale, before, after)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all kinds of changes."""
        return tuple(self._begin)

    def begin(self, name: str, chance: Random) -> str:
        """Begin a change of this kind; return its description.

        Raises RequestError if it can't begin now, JobTimeoutError if its preparation takes too long.
        """
        return self._begin[name](chance)

    def _move(self, strategy: str, chance: Random) -> str:
        operator = chance.choice(self._moved)
        if self._workers(operator) < 2:
            self._job.scale(operator, 2, timeout=IN_PEACE)
        groups = [group.group for group in self._job.snapshot(operator).key_groups]
        moved = chance.sample(groups, len(groups) // 2)
        self._job.migrate(operator, groups=moved, to=chance.randrange(self._workers(operator)), strategy=strategy, timeout=None)
        return f"half of the keys of {operator} move ({strategy})"

    def _scale(self, before: int, after: int, chance: Random) -> str:
        operator = chance.choice(self._scaled)
        if self._workers(operator) != before:
            self._job.scale(operator, before, timeout=IN_PEACE)
        self._job.scale(operator, after, timeout=None)
        return f"{operator} goes from {before} to {after} workers"

    def _workers(self, operator: str) -> int:
        return sum(stage_of(name) == operator for name in self._job.status().workers)
