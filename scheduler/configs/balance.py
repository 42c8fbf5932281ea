"""Automatic balancing: which balancer plans, and when."""

from __future__ import annotations

from dataclasses import dataclass

from ...balancer.policies import POLICIES
from ...engine.errors import FlowError
from ...engine.time.duration import Duration
from ..checks import duration, flag, number, refusal, whole

OFF = "off"
"""Stands in place of a balancer's or a scaling policy's name."""

LEAST_THRESHOLD = 1.05
"""The smallest `threshold`: below it, the remainder of a plan would trigger the next one."""


class Preset(str):
    """A policy's name that is a default: a job that can't use it does without, where a name that the user chose is refused."""

    __slots__ = ()


DEFAULT_BALANCER = Preset("hotspot")


@dataclass(frozen=True, slots=True)
class BalanceConfig:
    """Automatic balancing of every operator with keyed state and more than one worker.

    `policy`: the balancer that plans, `off` for none. The other settings hold for this balancer and for one that `job.balancer`
    switches on for an operator, and `windows` and `split_hot_keys` also for `job.rebalance`. It acts when the hottest worker has
    had `threshold` times the least possible load for `after`, then not for `cooldown`; moved keys stay for `rest` unless their
    load shifts. `least_busy`: the busy share of the hottest worker from which keys are moved; below it, no worker limits the job.
    `max_bytes`: most state that one plan moves. `windows`: the newest windows that a plan on request (`job.rebalance`) uses.
    `split_hot_keys`: True if `hotspot` may split a key of a join over several workers when that key alone exceeds a worker's mean
    load; the split ends when the key has cooled.

    >>> BalanceConfig(threshold=1.5).policy
    'hotspot'
    """

    policy: str = DEFAULT_BALANCER
    threshold: float = 1.2
    after: Duration = "3s"
    cooldown: Duration = "3s"
    rest: Duration = "10s"
    least_busy: float = 0.2
    max_bytes: int | None = None
    windows: int = 5
    split_hot_keys: bool = True

    def __post_init__(self) -> None:
        if (problem := balancer_problem(self.policy)) is not None:
            raise FlowError(f"BalanceConfig: {problem}")
        number(self, "threshold", "least_busy")
        duration(self, "after", "cooldown", "rest")
        whole(self, 1, "windows")
        flag(self, "split_hot_keys")
        if not self.threshold >= LEAST_THRESHOLD:
            raise refusal(self, "threshold", f"a factor of at least {LEAST_THRESHOLD}")
        if not 0 <= self.least_busy <= 1:
            raise refusal(self, "least_busy", "a part of a worker's time, 0 to 1")
        if self.max_bytes is not None and (not isinstance(self.max_bytes, int) or isinstance(self.max_bytes, bool) or self.max_bytes < 0):
            raise refusal(self, "max_bytes", "0 or more, or None for any number")


def balancer_problem(name: str) -> str | None:
    """Return the reason why a job can't be balanced by `name`; None if it can, or it is `off`."""
    return None if name == OFF or name in POLICIES else f"{name!r} can't balance a job: use {', '.join((*POLICIES, OFF))}"
