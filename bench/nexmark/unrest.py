"""Changes a running job all the time: every second it moves keys of an operator or scales one, drawn by a seed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import evenflow as ef

from ...balancer.policies import POLICIES
from ...scheduler.configs.job import LIVE
from ..harness.background import Background

MOST_WORKERS = 3
MOVE, REBALANCE, SCALE = "moves", "rebalances", "scalings"


class Unrest(Background):
    """A context that changes `job` every `every` seconds, unless it changes or recovers already.

    `keyed`: the operators whose keys move; `scalable`: those that get one to `MOST_WORKERS` workers. `begun` counts the changes by kind.
    """

    def __init__(self, job: ef.Job, keyed: Sequence[str], scalable: Sequence[str], *, every: float = 1.0, seed: int = 0) -> None:
        super().__init__(every, "unrest")
        self._job = job
        self._chances = (Random(f"{seed} {step}") for step in itertools.count())  # noqa: S311 -- what changes is no secret
        self._operators = {MOVE: keyed, REBALANCE: keyed, SCALE: scalable}
        self.begun = Counter[str]()

    def _step(self) -> None:
        chance = next(self._chances)
        what = chance.choice([what for what, operators in self._operators.items() if operators])
        with suppress(ef.EvenflowError, TimeoutError):  # it recovers, or something moves already
            self._begin(what, chance.choice(self._operators[what]), chance)
            self.begun[what] += 1

    def _begin(self, what: str, operator: str, chance: Random) -> None:
        if what == SCALE:
            self._job.scale(operator, chance.randint(1, MOST_WORKERS), timeout=None)
        elif what == REBALANCE:
            self._job.rebalance(operator, policy=chance.choice(list(POLICIES)), strategy=chance.choice(LIVE), timeout=None)
        else:
            groups = [group.group for group in self._job.snapshot(operator).key_groups]
            # none is known while the job starts or recovers
            workers = max(1, sum(name.rpartition("-")[0] == operator for name in self._job.status().workers))
            moved = chance.sample(groups, len(groups) // 2)
            self._job.migrate(operator, groups=moved, to=chance.randrange(workers), strategy=chance.choice(LIVE), timeout=None)
