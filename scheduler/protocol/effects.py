"""The effects of the job's state machine, and the job's states. An interpreter carries the effects out in order.

Every effect names its cause, the event that led to it, for logs and for the story in error messages. Effects that differ only in
their cause are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ...engine.plan.physical import Plan
from ...engine.plan.rescale import NewCode
from ...engine.protocol.ids import Attempt, CheckpointNumber, WorkerId
from .changed_settings import ChangedSettings
from .manifest import Manifest
from .messages import Command


class JobState(StrEnum):
    """The state of a job; the last three are final. RESTARTING: it restores its last checkpoint."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    final: bool

    def __init__(self, value: str) -> None:
        self.final = value in ("finished", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class StopOrder:
    """A way to stop a job: at a last checkpoint, from which another run continues.

    `drain`: sources end instead, and windows and timers fire. `savepoint`: the folder or URL to copy the last checkpoint to.
    """

    drain: bool = False
    savepoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caused:
    """`cause`: the event that led to an effect."""

    cause: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Tell(Caused):
    """Send `command` to `worker`; commands to one worker are in order."""

    worker: WorkerId
    command: Command


@dataclass(frozen=True, slots=True)
class Save(Caused):
    """Write the manifest. Answered with `ManifestSaved`."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Commit(Caused):
    """Commit `checkpoint`: `committables` by sink operator. Answered with `Committed`.

    `completed`: checkpoints so far. `last`: no commit follows, so data that writers prepared in vain can be removed.
    """

    checkpoint: CheckpointNumber
    committables: Mapping[str, list[Any]]
    completed: int = 0
    last: bool = False


@dataclass(frozen=True, slots=True)
class RestoreSinks(Caused):
    """Bring the sinks to where attempt `attempt` begins: at `manifest`, or at nothing. Answered with `SinksRestored`.

    The manifest's committables are committed, perhaps for the second time. `retracts`: the newest checkpoint that may have been
    committed, if it is later than the manifest; the sinks first take back the output since the manifest.
    """

    attempt: Attempt
    manifest: Manifest | None
    retracts: int | None = None


@dataclass(frozen=True, slots=True)
class FindOlder(Caused):
    """Checkpoint `checkpoint` can't be read because of `problem`: find the one before it. Answered with `OlderFound`."""

    checkpoint: CheckpointNumber
    problem: str


@dataclass(frozen=True, slots=True)
class Discard(Caused):
    """Remove the files of the failed checkpoint `checkpoint`, to free their space."""

    checkpoint: CheckpointNumber


@dataclass(frozen=True, slots=True)
class CopySavepoint(Caused):
    """Copy the checkpoint of `manifest` to the folder `path`. Answered with `SavepointCopied`.

    `last`: the job stops with it, and a coordinator that takes over makes it again.
    """

    path: str
    manifest: Manifest
    last: bool = False


@dataclass(frozen=True, slots=True)
class RememberStart(Caused):
    """All workers had started at `since` (seconds since the epoch): a coordinator that takes over from a lost one needs to know."""

    since: float


@dataclass(frozen=True, slots=True)
class RememberStop(Caused):
    """The job was asked to stop: a coordinator that takes over from a lost one needs to know."""

    order: StopOrder


@dataclass(frozen=True, slots=True)
class RememberCode(Caused):
    """A coordinator that takes over runs these stages with this code, and has as many workers of each stage as `parallelism` says.

    Of all other stages it runs the code that it was started with.
    """

    codes: Mapping[str, NewCode]
    parallelism: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RememberSettings(Caused):
    """Settings of the job were changed: a coordinator that takes over from a lost one needs to know."""

    changed: ChangedSettings


@dataclass(frozen=True, slots=True)
class Deploy(Caused):
    """End the processes of earlier attempts, and start all tasks of `plan` from `manifest` (None: from nothing).

    Each worker's start is an event `ready`, a failure an event `not_deployed`.
    """

    attempt: Attempt
    plan: Plan
    manifest: Manifest | None


@dataclass(frozen=True, slots=True)
class Spawn(Caused):
    """Start `workers`, whose tasks and channels are in `plan`, next to the running ones. Each is `ready`, or all are
    `not_spawned`.
    """

    attempt: Attempt
    plan: Plan
    workers: tuple[WorkerId, ...]


@dataclass(frozen=True, slots=True)
class Retire(Caused):
    """These workers have left the job: end their processes."""

    workers: tuple[WorkerId, ...]


@dataclass(frozen=True, slots=True)
class UseNodes(Caused):
    """Start no more processes on the nodes `avoid`. New processes go to the nodes `prefer`, if there are any."""

    avoid: frozenset[str] = frozenset()
    prefer: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Reserve(Caused):
    """Keep more spare processes ready, with which these workers are to go on, and no others. A failure is an event `not_reserved`.

    `hurry`: the job waits for them: start them together, and ask the cluster's autoscaler for room. Otherwise one after the other.
    """

    workers: tuple[WorkerId, ...] = ()
    hurry: bool = True


@dataclass(frozen=True, slots=True)
class AskForRoom(Caused):
    """Ask the cluster's autoscaler for `nodes` nodes that the job isn't on; 0 withdraws the request."""

    nodes: int


@dataclass(frozen=True, slots=True)
class LeaveNode(Caused):
    """End the coordinator's process, which Ray starts again on another node; the job continues there from its newest checkpoint."""


@dataclass(frozen=True, slots=True)
class Ended(Caused):
    """The job has come to a final state."""

    state: JobState


@dataclass(frozen=True, slots=True)
class Warn(Caused):
    """Write to the job's log."""

    text: str


StorageEffect = (
    Save | Commit | RestoreSinks | FindOlder | Discard | CopySavepoint | RememberStart | RememberStop | RememberSettings | RememberCode
)

WorkersEffect = Tell | Deploy | Spawn | Retire | UseNodes | Reserve | AskForRoom | LeaveNode

Effect = StorageEffect | WorkersEffect | Warn | Ended
