"""A step of a reconfiguration, as every task that takes part in it is told."""

from __future__ import annotations

from dataclasses import dataclass

from .routing import Move


@dataclass(frozen=True, slots=True)
class HandoverStep:
    """One step of a reconfiguration: `moves`, and how.

    `lazy`: state is fetched key by key. `pause`: the tasks that feed the operator wait until the step is done.
    """

    version: int
    moves: tuple[Move, ...]
    lazy: bool = False
    pause: bool = False
