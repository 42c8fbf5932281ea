"""A step of a migration, as the coordinator announces it to the tasks that take part."""

from __future__ import annotations

from dataclasses import dataclass

from .ids import StepVersion
from .routing import Move


@dataclass(frozen=True, slots=True)
class HandoverStep:
    """One step of a migration: its `moves`, and how they are made.

    `lazy`: state is fetched key by key. `pause`: the upstream tasks wait until the step is done.
    """

    version: StepVersion
    moves: tuple[Move, ...]
    lazy: bool = False
    pause: bool = False
