"""Skewed word count on a simulated cluster: a hot key with a fifth, a half or seven tenths of the words, DS2 alone and with the balancer.

DS2 averages over the workers of an operator, so skew defeats it: the workers suffice for the words in total, but one of them has the hot
key and a share of all others. No placement of whole keys gives that worker less than the hot key's words: if they are more than one worker
can count, no policy reaches the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..scheduler.policies.dataflow.settings import DEFAULTS
from ..testing.load_model.closed_loop import ClusterModel, Controller, ModelOperator, closed_loop
from .record import Case, Verdict

SHARES = (0.2, 0.5, 0.7)
NEEDS = (1.3, 1.8, 2.6, 3.6, 4.6, 5.6)
"""Workers that the words would need with a perfectly even load."""

RATE = 1000.0
"""Words/s that a worker counts."""

SECONDS, LAST = 600.0, 60
REACHED = 0.99
"""Of the demand, over the last minute."""

ALONE = replace(DEFAULTS, skew_tolerance=1e9)
"""DS2 as it was published: it doesn't look for skew."""


@dataclass(frozen=True, slots=True)
class Skewed:
    """`alone`, `balanced`: the part of the demand that DS2 gets through, without the balancer and with it."""

    share: float
    need: float
    alone: float
    balanced: float

    @property
    def allowed(self) -> bool:
        """Whether one worker can count the hot key's words."""
        return self.share * self.need <= 1.0


def run() -> list[Skewed]:
    """Every share with every demand."""
    return [
        Skewed(share, need, simulate(share, need, balance=False), simulate(share, need, balance=True)) for share in SHARES for need in NEEDS
    ]


def simulate(share: float, need: float, *, balance: bool) -> float:
    """The part of the demand that is counted in the last minute, at most 1: from one worker, with DS2.

    >>> [round(simulate(0.5, 1.8, balance=balance), 3) for balance in (False, True)]
    [0.741, 1.0]
    """
    source = ModelOperator("source", 100 * RATE, demand=lambda _: need * RATE)
    count = ModelOperator("count", RATE, hot_keys=(share,))
    model = ClusterModel([source, count], [("source", "count")], DEFAULTS if balance else ALONE)
    samples = closed_loop(model, Controller("ds2"), SECONDS).samples
    done = samples[-1].processed["count"] - samples[-1 - LAST].processed["count"]
    return min(1.0, done / (LAST * need * RATE))


def cases_of(streams: Sequence[Skewed]) -> list[Case]:
    """What is reported of each stream."""
    found = []
    for one in streams:
        found += [Case(f"{name_of(one)}, ds2/of the demand", "", "higher", (one.alone,))]
        found += [Case(f"{name_of(one)}, ds2 and balancer/of the demand", "", "higher", (one.balanced,))]
    return found


def line_of(one: Skewed) -> str:
    """One line on a stream."""
    return f"{name_of(one)}: {one.alone:.1%} of the demand with ds2, {one.balanced:.1%} with the balancer"


def name_of(one: Skewed) -> str:
    """How a stream is called.

    >>> name_of(Skewed(0.5, 2.6, 0.6, 0.8))
    'model, hot key 50%, words for 2.6 workers, above the floor'
    """
    return f"model, hot key {one.share:.0%}, words for {one.need:g} workers{'' if one.allowed else ', above the floor'}"


def verdicts(streams: Sequence[Skewed]) -> list[Verdict]:
    """DS2 alone misses the target at every share, with the balancer it reaches it wherever the floor allows."""
    allowed = [one for one in streams if one.allowed]
    missed = min(sum(one.alone < REACHED for one in allowed if one.share == share) for share in SHARES)
    reached = sum(one.balanced >= REACHED for one in allowed) / len(allowed)
    which = f"of the {len(allowed)} streams within the floor"
    return [
        Verdict(f"simulated: {which}, the fewest of a hot key that DS2 alone misses", missed, 1, "higher"),
        Verdict(f"simulated: the part {which} in which DS2 with the balancer reaches the target", reached, 1, "higher"),
    ]
