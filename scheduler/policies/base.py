"""The interface of scaling policies: a pure function from a snapshot and a memory to a decision and a new memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision

Memory = TypeVar("Memory")


@dataclass(frozen=True, slots=True)
class ScalingPolicy(ABC, Generic[Memory]):
    """A scaling policy with its own settings, which are the fields of its class; it is asked every policy interval.

    `Memory` is a frozen value, None for a policy that needs none; the caller keeps it. Equal snapshots and memories give equal
    decisions. A policy learns the outcome of its decision from later snapshots, so a decision that was not carried out does no
    harm.
    """

    name: ClassVar[str]

    @abstractmethod
    def start(self) -> Memory:
        """Return the memory before the first snapshot."""

    @abstractmethod
    def decide(self, snapshot: DataflowSnapshot, memory: Memory) -> tuple[ScalingDecision, Memory]:
        """Return the decision, and the memory to pass in with the next snapshot. Raises FlowError if the snapshot's settings lack
        a goal that the policy needs.
        """

    @property
    def needs_latency(self) -> bool:
        """True if the policy can't decide without a `latency_target_ms`."""
        return False

    def at_once(self) -> Self:
        """Return the same policy without patience: the first snapshot decides what repeating it would lead to."""
        return self


def settled(policy: ScalingPolicy[Any], snapshot: DataflowSnapshot) -> ScalingDecision:
    """Return the decision of a policy that observes the same snapshot until its patience is over."""
    return policy.at_once().decide(snapshot, policy.start())[0]
