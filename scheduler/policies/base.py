"""What every scaling policy is: a function from a snapshot and its own memory to a decision and a new memory, without I/O or clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from .dataflow.settings import PolicySettings
from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision

Memory = TypeVar("Memory")


class Policy(ABC, Generic[Memory]):
    """Asked every policy interval. `Memory` is a frozen value, None for a policy that needs none; the caller keeps it.

    Equal snapshots and memories give equal decisions. A policy learns what became of its decision from the snapshots after it, so that
    a decision that was not carried out does no harm.
    """

    name: ClassVar[str]

    @abstractmethod
    def start(self) -> Memory:
        """The memory before the first snapshot."""

    @abstractmethod
    def decide(self, snapshot: DataflowSnapshot, memory: Memory) -> tuple[ScalingDecision, Memory]:
        """What should change, and what to hand in with the next snapshot. Raises FlowError if the policy lacks a setting."""

    def at_once(self, settings: PolicySettings) -> PolicySettings:
        """The same goals without patience: with them the first snapshot decides what the same one, again and again, would lead to."""
        return settings


def settled(policy: Policy[Any], snapshot: DataflowSnapshot) -> ScalingDecision:
    """What a policy decides if it goes on seeing the same for as long as its patience asks."""
    seen = replace(snapshot, settings=policy.at_once(snapshot.settings))
    return policy.decide(seen, policy.start())[0]
