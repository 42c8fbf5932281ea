"""The effects that a task returns: its driver sends, reports and stores; the task itself does no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...state.files import StateFile
from ..batch import Batch
from .elements import Element
from .handover_step import Arrived
from .ids import NO_CHECKPOINT, ChannelId, CheckpointNumber
from .read_value import ReadValue


@dataclass(frozen=True, slots=True)
class Sent:
    """The effect of sending `element` on `channel`."""

    channel: ChannelId
    element: Element


@dataclass(frozen=True, slots=True)
class SavedChunk:
    """A chunk of the task's keyed state, as of the barrier of `checkpoint`."""

    checkpoint: CheckpointNumber
    chunk: Batch


@dataclass(frozen=True, slots=True)
class Prepared:
    """The effect of a finished checkpoint: the task passed it on and handed out its state; `committables` by sink operator.

    `watermark`: the task's event time at the barrier. `base`: the checkpoint since which it saved the changes; 0: it saved
    everything. The driver adds the source's `position` and the `files` with the saved state.
    """

    checkpoint: CheckpointNumber
    committables: dict[str, list[Any]]
    watermark: int = 0
    position: Any = None
    files: tuple[StateFile, ...] = ()
    base: CheckpointNumber = NO_CHECKPOINT
    own_times: Mapping[str, int] = field(default_factory=dict)
    """The watermarks of operators with an event time of their own, by name."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The effect of the task's end: it has sent its last element.

    `committables`: the rows that its sinks wrote since the last checkpoint. The driver adds the `position` of its source.
    """

    committables: dict[str, list[Any]]
    position: Any = None


@dataclass(frozen=True, slots=True)
class Latency:
    """The effect of receiving a latency mark, which left a source at `created` (nanoseconds), in a task without outputs."""

    created: int


@dataclass(frozen=True, slots=True)
class Consumed:
    """The effect of having processed a batch from `channel`, which allows its credit to return to the sender."""

    channel: ChannelId
    batch: Batch


@dataclass(frozen=True, slots=True)
class Rewound:
    """The effect of having received a `Rewind` from every input."""


@dataclass(frozen=True, slots=True)
class Work:
    """The effect of handing work of the operator at `position` to another thread; the driver returns the outcome to the task."""

    position: int
    run: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class WorkOutcome:
    """The end of `Work`: its result, or the error it raised."""

    result: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class OperatorProblem:
    """The effect of reporting that something that `operator` attempted failed; the task continues without it."""

    operator: str
    problem: str


@dataclass(frozen=True, slots=True)
class StateRead:
    """The effect of having looked for a key in the state, for request `number`; `value`: None for a key without state.

    `here`: false if the key may belong to another worker by now. `typed`: the key's type was compared with that of the keys here.
    `problem`: the reason why the key can't be read.
    """

    number: int
    value: ReadValue | None = None
    here: bool = True
    typed: bool = False
    problem: str | None = None


Effect = Sent | SavedChunk | Prepared | Finished | Latency | Consumed | Arrived | Rewound | Work | OperatorProblem | StateRead
