"""The point from which a job begins: empty, a savepoint, the end of an earlier start, or the state of a lost coordinator."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...engine.protocol.ids import FIRST_ATTEMPT, NO_CHECKPOINT, Attempt, CheckpointNumber
from .changed_settings import ChangedSettings
from .effects import RememberCode, StopOrder
from .manifest import Manifest


@dataclass(frozen=True, slots=True)
class RestorePoint:
    """`manifest`: the checkpoint to begin from; `from_savepoint`: it may be another job's. `last`: the highest number of a
    checkpoint so far, also of earlier runs.

    `takes_over`: another coordinator ran the job before. `resumes`: an earlier start of the program did, and this one continues
    its run. Of that: `committed`, the newest checkpoint that sinks may have committed; `attempt`, higher than all of its
    attempts; `completed` checkpoints; `running_since`, when all workers had started (seconds since the epoch); `stop`, how it was
    asked to; `settings`, those that were changed; `code`, the code that replaced that of the plan.
    """

    manifest: Manifest | None = None
    from_savepoint: bool = False
    last: CheckpointNumber = NO_CHECKPOINT
    takes_over: bool = False
    committed: CheckpointNumber = NO_CHECKPOINT
    attempt: Attempt = FIRST_ATTEMPT
    completed: int = 0
    running_since: float | None = None
    resumes: bool = False
    stop: StopOrder | None = None
    code: RememberCode | None = None
    settings: ChangedSettings = field(default_factory=ChangedSettings)
