"""The interface of scaling policies: a pure function from a snapshot and a memory to a decision and a new memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from .dataflow.settings import PolicySettings
from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision

Memory = TypeVar("Memory")


class Policy(ABC, Generic[Memory]):
    """A scaling policy, asked every policy interval. `Memory` is a frozen value, None for a policy that needs none; the caller
    keeps it.

    Equal snapshots and memories give equal decisions. A policy learns the outcome of its decision from later snapshots, so a
    decision that was not carried out does no harm.
    """

    name: ClassVar[str]

    @abstractmethod
    def start(self) -> Memory:
        """Return the memory before the first snapshot."""

    @abstractmethod
    def decide(self, snapshot: DataflowSnapshot, memory: Memory) -> tuple[ScalingDecision, Memory]:
        """Return the decision, and the memory to pass in with the next snapshot. Raises FlowError if the policy lacks a
        setting.
        """

    def at_once(self, settings: PolicySettings) -> PolicySettings:
        """Return the same goals without patience: with them the first snapshot decides what repeating it would lead to."""
        return settings


def settled(policy: Policy[Any], snapshot: DataflowSnapshot) -> ScalingDecision:
    """Return the decision of a policy that observes the same snapshot until its patience is over."""
    seen = replace(snapshot, settings=policy.at_once(snapshot.settings))
    return policy.decide(seen, policy.start())[0]
