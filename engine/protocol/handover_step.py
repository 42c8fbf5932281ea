"""A step of a migration as the coordinator announces it, and the report of a worker that takes part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .ids import StepVersion
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


def steps_by_worker(steps: Iterable[HandoverStep]) -> dict[int, tuple[HandoverStep, ...]]:
    """Return the steps in which each worker gives or takes keys, with its own moves only, by the worker's index."""
    found: dict[int, list[HandoverStep]] = {}
    for step in steps:
        moves: dict[int, list[Move]] = {}
        for move in step.moves:
            moves.setdefault(move.source, []).append(move)
            moves.setdefault(move.target, []).append(move)
        for index, own in moves.items():
            found.setdefault(index, []).append(replace(step, moves=tuple(own)))
    return {index: tuple(own) for index, own in found.items()}


def partners(index: int, steps: Iterable[HandoverStep]) -> list[int]:
    """Return the other workers in the moves of worker `index`, by their indexes."""
    return sorted({end for step in steps for move in step.moves for end in (move.source, move.target)} - {index})


@dataclass(frozen=True, slots=True)
class Arrived:
    """The report that all state of step `version` from worker `source` is installed: `keys` keys, `state_bytes` bytes."""

    version: StepVersion
    source: int
    keys: int
    state_bytes: int
