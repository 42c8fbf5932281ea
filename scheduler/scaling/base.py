"""What every scaling policy is: a function from a snapshot and its own memory to a decision and a new memory, without I/O or clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar, Generic, TypeVar

from .decision import ScalingDecision
from .settings import PolicySettings
from .snapshot import DataflowSnapshot

Memory = TypeVar("Memory")


class Policy(ABC, Generic[Memory]):
    """Asked every policy interval. `Memory` is a frozen value, None for a policy that needs none; the caller keeps it.

    Equal snapshots and memories give equal decisions. A policy learns what became of its decision from the snapshots after it, so that
    one which nobody carried out does no harm.
    """

    name: ClassVar[str]

    @abstractmethod
    def start(self) -> Memory:
        """The memory before the first snapshot."""

    @abstractmethod
    def decide(self, snapshot: DataflowSnapshot, memory: Memory) -> tuple[ScalingDecision, Memory]:
        """What should change, and what to hand in with the next snapshot. Raises FlowError if the policy lacks a setting."""

    def patience(self, settings: PolicySettings) -> int:
        """How many snapshots of the same kind in a row it takes for a decision."""
        return 1


def settled(policy: Policy[Memory], snapshot: DataflowSnapshot) -> ScalingDecision:
    """What a policy decides if it goes on seeing the same, every `interval_s`, for as long as its patience asks."""
    memory = policy.start()
    decision = ScalingDecision()
    for look in range(policy.patience(snapshot.settings)):
        seen = replace(snapshot, time=snapshot.time + look * snapshot.settings.interval_s)
        decision, memory = policy.decide(seen, memory)
        if decision.changes:
            break
    return decision
