"""Control messages between the coordinator and the workers, and their order.

Actor calls may overtake each other, so each direction is numbered and put back in order here before anything reads it.

>>> inbox = InOrder[str]()
>>> inbox.put(1, "second"), inbox.put(0, "first")
([], ['first', 'second'])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ...engine.plan.channel_spec import ChannelSpec
from ...engine.protocol.effects import Finished, OperatorProblem, Prepared, Rewound, Switched
from ...engine.protocol.handover_step import Arrived, HandoverStep, Peer
from ...engine.protocol.ids import NO_CHECKPOINT, ChannelId, CheckpointNumber, StepVersion, WorkerId
from ..load.window import WorkerWindow

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BeginCheckpoint:
    """Tells a source worker to send barrier `checkpoint` between two polls; `base` is complete (0: everything must be saved).

    `last`: read no more behind it.
    """

    checkpoint: CheckpointNumber
    base: CheckpointNumber = NO_CHECKPOINT
    last: bool = False


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

    version: StepVersion


@dataclass(frozen=True, slots=True)
class Resume:
    """To a worker that a step paused: go on."""


@dataclass(frozen=True, slots=True)
class Attach:
    """To a worker: more workers are around it. Answered with `Attached`, also by a worker that has finished.

    It takes elements of the channels `accept` from now on, and opens those of `connect`, whose receivers are at `addresses` (the driver
    adds them). `inputs`: channels for records that come in; `outputs`: (exchange, channel) for records that go out; `peers`: of its own
    operator.
    """

    token: int
    accept: tuple[ChannelSpec, ...] = ()
    connect: tuple[ChannelSpec, ...] = ()
    inputs: tuple[ChannelId, ...] = ()
    outputs: tuple[tuple[int, ChannelId], ...] = ()
    peers: tuple[Peer, ...] = ()
    addresses: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Detach:
    """To a worker: workers after it leave. The channels `outputs` end; `peers` (indexes) left its operator. Answered with `Attached`."""

    token: int
    outputs: tuple[ChannelId, ...] = ()
    peers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PauseSource:
    """To a source worker: read no more for now. Answered with `SourcePaused`."""

    token: int


@dataclass(frozen=True, slots=True)
class ExpectRewind:
    """To a worker after a source: these inputs will state their event time again. Answered with `Attached`, then with `Rewound`."""

    token: int
    channels: tuple[ChannelId, ...]


@dataclass(frozen=True, slots=True)
class TakeSource:
    """To a source worker: read on from `position` as reader `index` of `parallelism`; None: there is nothing left for it.

    `own_times`: what the operators with an event time of their own have come to in all workers, by name.
    """

    index: int
    parallelism: int
    position: Any
    own_times: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResumeSource:
    """To a source worker that was paused: read on where it was."""


Rescaling = Attach | Detach | PauseSource | ExpectRewind | TakeSource | ResumeSource

Command = BeginCheckpoint | StopSource | Shutdown | Announce | Switch | Resume | Rescaling

Commands = list[tuple[WorkerId, Command]]
"""Commands in the order in which they are sent, each with its worker."""


@dataclass(frozen=True, slots=True)
class Attached:
    """From a worker: it has done what message `token` asked for. `finished`: it had sent its last element before."""

    token: int
    finished: bool = False


@dataclass(frozen=True, slots=True)
class SourcePaused:
    """From a source worker: it reads no more, and is at `position`; `finished`: it has read everything, and ended its outputs.

    `own_times`: what its operators with an event time of their own have come to, by name.
    """

    token: int
    position: Any
    finished: bool = False
    own_times: Mapping[str, int] = field(default_factory=dict)


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

    checkpoint: CheckpointNumber
    problem: str
    committables: dict[str, list[Any]]


Report = (
    Attached
    | SourcePaused
    | Rewound
    | Prepared
    | CheckpointFailed
    | Finished
    | Failed
    | WorkerWindow
    | Announced
    | Switched
    | Arrived
    | OperatorProblem
)


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
