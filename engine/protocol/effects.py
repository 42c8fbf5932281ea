"""The effects that a task returns: its driver sends, reports and stores; the task itself does no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...state.files import StateFile
from ..batch import Batch
from .elements import Element
from .handover_step import Arrived
from .ids import NO_CHECKPOINT, ChannelId, CheckpointNumber, StepVersion


@dataclass(frozen=True, slots=True)
class Sent:
    """The effect of sending `element` on `channel`."""

    channel: ChannelId
    element: Element


@dataclass(frozen=True, slots=True)
class Saved:
    """A chunk of the task's keyed state as it was at the barrier of `checkpoint`."""

    checkpoint: CheckpointNumber
    chunk: Batch


@dataclass(frozen=True, slots=True)
class Prepared:
    """Checkpoint `checkpoint` has passed this task, and all its state is handed out; `committables` by sink operator.

    `watermark`: the task's event time at the barrier. `base`: the checkpoint since which it saved the changes; 0: it saved everything. The
    driver adds the source's `position` and the `files` with the saved state.
    """

    checkpoint: CheckpointNumber
    committables: dict[str, list[Any]]
    watermark: int = 0
    position: Any = None
    files: tuple[StateFile, ...] = ()
    base: CheckpointNumber = NO_CHECKPOINT
    own_times: Mapping[str, int] = field(default_factory=dict)
    """By name, what the operators with an event time of their own have come to."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The task has sent its last element; `committables` describe the rows that its sinks wrote since the last checkpoint.

    The driver adds the `position` of its source.
    """

    committables: dict[str, list[Any]]
    position: Any = None


@dataclass(frozen=True, slots=True)
class Latency:
    """A latency mark that left a source at `created` (nanoseconds) has reached a task without outputs."""

    created: int


@dataclass(frozen=True, slots=True)
class Consumed:
    """The task has processed a batch from `channel`: its credit may go back to the sender."""

    channel: ChannelId
    batch: Batch


@dataclass(frozen=True, slots=True)
class Switched:
    """The task routes by the table of step `version`, and has sent its markers."""

    version: StepVersion


@dataclass(frozen=True, slots=True)
class Rewound:
    """Every input of the task has stated its event time again (`Rewind`)."""


@dataclass(frozen=True, slots=True)
class Work:
    """The operator at `position` has work that is to be done outside of the task's thread; the driver brings the result to the task."""

    position: int
    run: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How `Work` ended: its result, or what it raised."""

    result: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class OperatorProblem:
    """Something that `operator` wanted went wrong; the task goes on without it."""

    operator: str
    problem: str


Effect = Sent | Saved | Prepared | Finished | Latency | Consumed | Switched | Arrived | Rewound | Work | OperatorProblem
