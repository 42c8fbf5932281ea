"""The interface of balancers: a pure function from a load snapshot to a plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from ..engine.errors import FlowError
from .plan import BalancePlan
from .snapshot import LoadSnapshot


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a plan.

    `tolerance`: good enough is max / mean <= tolerance * floor. `max_bytes`: most state to move, None for any. `fixed_groups`,
    `fixed_keys`: key groups and keys that must not move, nor be split. `split_keys`: True if the plan may split hot keys and
    gather them; `kept_split`: keys that it must not gather. Raises FlowError for a tolerance below 1 and for negative bytes.
    """

    tolerance: float = 1.05
    max_bytes: int | None = None
    fixed_groups: frozenset[int] = frozenset()
    fixed_keys: frozenset[Hashable] = frozenset()
    split_keys: bool = True
    kept_split: frozenset[Hashable] = frozenset()

    def __post_init__(self) -> None:
        if not self.tolerance >= 1:
            raise FlowError(f"tolerance is {self.tolerance}: it is a multiple of the least imbalance, 1 or more, for example 1.05")
        if self.max_bytes is not None and self.max_bytes < 0:
            raise FlowError(f"max_bytes is {self.max_bytes}: it must be 0 or more, or None for any number")


ANY_STATE = Limits()
"""The default: no limit on moves."""


class Balancer(ABC):
    """A rule that finds a better placement for a load snapshot. Pure: equal snapshots give equal plans.

    `hotspot` improves the present placement within the limits, and may split keys. `lpt` computes a new placement from scratch, however
    much that moves, and ignores the limits.
    """

    name: ClassVar[str]

    @abstractmethod
    def plan(self, snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> BalancePlan:
        """Return the moves to make, none if nothing helps."""

    def floor(self, snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> float:
        """Return the least imbalance that a plan of this balancer could reach, in multiples of the present mean load."""
        return snapshot.floor

    def needless_splits(self, snapshot: LoadSnapshot) -> frozenset[Hashable]:
        """Return the split keys that a plan would gather, if allowed."""
        return frozenset()
