"""Control messages between the coordinator and the workers, and their order.

Actor calls may overtake each other, so each direction is numbered and put back in order here before anything reads it.

>>> inbox = InOrder[str]()
>>> inbox.put(1, "second"), inbox.put(0, "first")
([], ['first', 'second'])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..engine.effects import Finished, Prepared, Switched
from ..engine.handover import Arrived
from ..engine.handover_step import HandoverStep
from .window import WorkerWindow

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BeginCheckpoint:
    """To a source worker: send barrier `checkpoint` between two polls."""

    checkpoint: int


@dataclass(frozen=True, slots=True)
class StopSource:
    """To a source worker: read no more, as if the input had ended."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """To any worker: close everything and leave."""


@dataclass(frozen=True, slots=True)
class Announce:
    """To the workers of stage `stage` and those that feed it: the steps of migration `number`. Answered with `Announced`."""

    number: int
    stage: str
    steps: tuple[HandoverStep, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """To a worker that feeds a stage: make step `version` of the routing table. Answered with `Switched`."""

    version: int


@dataclass(frozen=True, slots=True)
class Resume:
    """To a worker that a step paused: go on."""


Command = BeginCheckpoint | StopSource | Shutdown | Announce | Switch | Resume


@dataclass(frozen=True, slots=True)
class Announced:
    """From a worker: it knows the steps of migration `number`."""

    number: int


@dataclass(frozen=True, slots=True)
class Failed:
    """From a worker: its task can't go on. `error` is one of evenflow's own."""

    error: Exception


@dataclass(frozen=True, slots=True)
class CheckpointFailed:
    """From a worker: it could not save its state; `committables` are what its sinks prepared all the same."""

    checkpoint: int
    problem: str
    committables: dict[str, list[Any]]


Report = Prepared | CheckpointFailed | Finished | Failed | WorkerWindow | Announced | Switched | Arrived


class InOrder(Generic[T]):
    """Gives numbered messages back in the order of their numbers, from 0 on; a repeated one is dropped."""

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, T] = {}

    def put(self, number: int, message: T) -> list[T]:
        """Take a message; returns those that are due now, in order."""
        if number < self._next:
            return []
        self._early[number] = message
        due = []
        while self._next in self._early:
            due.append(self._early.pop(self._next))
            self._next += 1
        return due
