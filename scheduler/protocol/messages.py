"""Control messages between the coordinator and the workers, and their order.

Actor calls may overtake each other, so each direction is numbered and put back in order here before anything reads it.

>>> inbox = InOrder[str]()
>>> inbox.put(1, "second"), inbox.put(0, "first")
([], ['first', 'second'])
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ...engine.plan.channel_spec import ChannelSpec
from ...engine.protocol.effects import Finished, OperatorProblem, Prepared, Rewound, StateRead
from ...engine.protocol.handover_step import Arrived, HandoverStep
from ...engine.protocol.ids import NO_CHECKPOINT, ChannelId, CheckpointNumber, StepVersion, WorkerId, WorkerNumber
from ...engine.protocol.read_value import KeyToRead
from ..load.window import WorkerWindow

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BeginCheckpoint:
    """Tells a source worker to send barrier `checkpoint` between two polls; `base` is complete (0: the whole state must be
    saved).

    `last`: read no more after it.
    """

    checkpoint: CheckpointNumber
    base: CheckpointNumber = NO_CHECKPOINT
    last: bool = False


@dataclass(frozen=True, slots=True)
class StopSource:
    """Tells a source worker to stop reading, as if the input had ended."""


LAST_ELEMENTS_SECONDS = 30.0
"""Seconds that the last elements of a worker that leaves have to get credit, and then to arrive at the others."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Tells a worker to close everything and leave. `others_go_on`: without it the job runs on, which waits for its last elements."""

    others_go_on: bool = False


@dataclass(frozen=True, slots=True)
class Announce:
    """Tells a worker steps of migration `number` of a stage. Answered with `Announced`.

    Workers that feed the stage get all steps, in one instance, which is pickled once. One of the stage gets its own moves. It
    opens channels for state to and from the workers at the other ends of them, `peers`, which are at `addresses` (the driver adds them).
    """

    number: int
    stage: str
    steps: tuple[HandoverStep, ...]
    peers: Mapping[WorkerId, WorkerNumber] = field(default_factory=dict)
    addresses: Mapping[WorkerId, Any] = field(default_factory=dict)
    _packed: bytes = field(default=b"", init=False, repr=False, compare=False)

    def __reduce__(self) -> Any:
        if not self._packed:
            object.__setattr__(self, "_packed", pickle.dumps((self.number, self.stage, self.steps, self.peers, self.addresses)))
        return _announce, (self._packed,)


def _announce(packed: bytes) -> Announce:
    return Announce(*pickle.loads(packed))  # noqa: S301 -- part of a pickle that is being loaded


@dataclass(frozen=True, slots=True)
class Switch:
    """Tells a worker that feeds a stage to make step `version` of the routing table.

    The worker sends its markers, and the workers that take state answer: with `Arrived`, once they have all markers and all state.
    """

    version: StepVersion


@dataclass(frozen=True, slots=True)
class Resume:
    """Tells a worker that a step paused to continue."""


@dataclass(frozen=True, slots=True)
class Attach:
    """Tells a worker about new neighbours. Answered with `Attached`, also by a worker that has finished.

    It receives elements on the channels `accept` from now on, and opens those of `connect`, whose receivers are at `addresses`
    (the driver adds them). `inputs`: channels for incoming records, with the channel that each comes after, None
    if after none; `outputs`: (exchange, place, channel) for outgoing records, in place of
    the channel that is there, which ends. `unused`: the rescale was abandoned, so the outputs end at once, and no channel gives way
    to them.
    """

    token: int
    accept: tuple[ChannelSpec, ...] = ()
    connect: tuple[ChannelSpec, ...] = ()
    inputs: tuple[tuple[ChannelId, ChannelId | None], ...] = ()
    outputs: tuple[tuple[int, int, ChannelId], ...] = ()
    addresses: Mapping[str, Any] = field(default_factory=dict)
    unused: bool = False


@dataclass(frozen=True, slots=True)
class Detach:
    """Tells a worker that workers after it leave. The channels `outputs` end; `peers` left its operator. Answered with `Attached`."""

    token: int
    outputs: tuple[ChannelId, ...] = ()
    peers: tuple[WorkerNumber, ...] = ()


@dataclass(frozen=True, slots=True)
class PauseSource:
    """Tells a source worker to pause reading. Answered with `SourcePaused`."""

    token: int


@dataclass(frozen=True, slots=True)
class ExpectRewind:
    """Tells a worker after a source that these inputs will send their event time again. Answered with `Attached`, then with
    `Rewound`.
    """

    token: int
    channels: tuple[ChannelId, ...]


@dataclass(frozen=True, slots=True)
class TakeSource:
    """Tells a source worker to read on from `position` as reader `index` of `parallelism`; None: no splits are left for it.

    `own_times`: event times of the operators that keep one of their own, over all workers, by operator name.
    """

    index: int
    parallelism: int
    position: Any
    own_times: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResumeSource:
    """Tells a paused source worker to resume reading where it stopped."""


@dataclass(frozen=True, slots=True)
class ReadState:
    """Tells a worker to read a key's state, also one that has finished. Answered with `StateRead`."""

    number: int
    wanted: KeyToRead


@dataclass(frozen=True, slots=True)
class ApplySettings:
    """Tells a worker to continue with these settings. `linger`: seconds; `log_level`: None for that of its process."""

    linger: float
    log_level: str | None


Rescaling = Attach | Detach | PauseSource | ExpectRewind | TakeSource | ResumeSource

Command = BeginCheckpoint | StopSource | Shutdown | Announce | Switch | Resume | ReadState | ApplySettings | Rescaling

Commands = list[tuple[WorkerId, Command]]
"""Commands in the order in which they are sent, each with its worker."""


@dataclass(frozen=True, slots=True)
class Attached:
    """Reports that a worker has carried out message `token`. `finished`: it had sent its last element before."""

    token: int
    finished: bool = False


@dataclass(frozen=True, slots=True)
class SourcePaused:
    """Reports that a source worker has paused at `position`; `finished`: it has read everything, and ended its outputs.

    `own_times`: event times of its operators that keep one of their own, by operator name.
    """

    token: int
    position: Any
    finished: bool = False
    own_times: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Announced:
    """Reports that a worker knows the steps of migration `number`."""

    number: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Reports that a worker's task can't continue. `error` is one of evenflow's own."""

    error: Exception


@dataclass(frozen=True, slots=True)
class CheckpointFailed:
    """Reports that a worker could not save its state; its sinks prepared `committables` nevertheless."""

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
    | Arrived
    | OperatorProblem
    | StateRead
)


class InOrder(Generic[T]):
    """Gives numbered messages back in the order of their numbers, from 0 on; a repeated one is dropped."""

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, T] = {}

    def put(self, number: int, message: T) -> list[T]:
        """Take a message; return those that are due now, in order."""
        if number < self._next:
            return []
        self._early[number] = message
        due = []
        while self._next in self._early:
            due.append(self._early.pop(self._next))
            self._next += 1
        return due
