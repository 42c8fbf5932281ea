"""A step of a migration as the coordinator announces it, the workers that take part, and their report."""

from __future__ import annotations

from dataclasses import dataclass

from .ids import ChannelId, StepVersion
from .routing import Move


@dataclass(frozen=True, slots=True)
class HandoverStep:
    """One step of a migration: its `moves` and how to make them.

    `lazy`: state is fetched key by key. `pause`: the upstream tasks wait until the step is done.
    """

    version: StepVersion
    moves: tuple[Move, ...]
    lazy: bool = False
    pause: bool = False


@dataclass(frozen=True, slots=True)
class Peer:
    """Another worker of the same operator: its index, and the channels to it and from it."""

    index: int
    outgoing: ChannelId
    incoming: ChannelId


@dataclass(frozen=True, slots=True)
class Arrived:
    """The report that all state of step `version` from worker `source` is installed: `keys` keys, `state_bytes` bytes."""

    version: StepVersion
    source: int
    keys: int
    state_bytes: int
