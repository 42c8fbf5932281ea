"""What the job's state machine wants to be done, and the states that it goes through. Whoever runs the job carries the effects out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..engine.plan.physical import Plan
from .manifest import Manifest
from .messages import Command


class JobState(StrEnum):
    """Where a job is in its life; the last three are final. RESTARTING: it goes back to its last checkpoint."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in (JobState.FINISHED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Tell:
    """Send `command` to `worker`; commands to one worker are in order."""

    worker: str
    command: Command


@dataclass(frozen=True, slots=True)
class Save:
    """Write the manifest, then say so to `JobCore.saved`."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove what checkpoint `checkpoint`, which came to nothing because of `problem`, has written: the next may need the room."""

    checkpoint: int
    problem: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit `checkpoint`: `committables` by sink operator. Commits must be carried out in the order in which they are given."""

    checkpoint: int
    committables: Mapping[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Redeploy:
    """After `delay` seconds, end what is left of earlier attempts, and start all tasks of `plan` from `manifest` (None: from nothing).

    What the manifest says is committed before that, again, since nobody knows whether it was carried out. `retracts`: later checkpoints may
    have been committed, which the sinks are to take back first.
    """

    attempt: int
    plan: Plan
    manifest: Manifest | None
    delay: float
    retracts: bool = False

    @property
    def commit(self) -> Commit | None:
        """What is to be committed first."""
        return Commit(self.manifest.checkpoint, self.manifest.committables) if self.manifest is not None else None


@dataclass(frozen=True, slots=True)
class Ended:
    """The job has come to a final state."""

    state: JobState


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start `workers`, whose tasks and channels are in `plan`, beside those that run."""

    plan: Plan
    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retire:
    """These workers have left the job: end their processes."""

    workers: tuple[str, ...]


Effect = Tell | Save | Discard | Commit | Redeploy | Spawn | Retire | Ended
