"""Typed names and numbers of a job's parts, so that one kind can't be mistaken for another.

>>> worker_id("count", 0), CheckpointNumber(3)
('count-0', 3)
>>> stage_of(worker_id("word-count", 12)), index_of(worker_id("word-count", 12))
('word-count', 12)
"""

from __future__ import annotations

from typing import NewType

WorkerId = NewType("WorkerId", str)
"""A stage and an index, such as `count-0`: the worker that runs that part of the plan, in any process."""


def worker_id(stage: str, index: int) -> WorkerId:
    """Return the id of worker `index` of a stage."""
    return WorkerId(f"{stage}-{index}")


def stage_of(worker: WorkerId) -> str:
    """Return the stage of a worker."""
    return worker.rpartition("-")[0]


def index_of(worker: WorkerId) -> int:
    """Return a worker's index in its stage."""
    return int(worker.rpartition("-")[2])


ChannelId = NewType("ChannelId", int)
"""A channel of the plan, from one worker to another; the number is never reused for another pair."""

Attempt = NewType("Attempt", int)
"""One run of the job's workers, from start to restart.

Messages of earlier attempts are ignored. The upper bits are the coordinator's term.
"""

FIRST_ATTEMPT = Attempt(0)

CheckpointNumber = NewType("CheckpointNumber", int)
"""A checkpoint, numbered from 1 over all attempts."""

NO_CHECKPOINT = CheckpointNumber(0)
"""The number that means no checkpoint. A save against it is complete; a job that restores it starts from the beginning."""

StepVersion = NewType("StepVersion", int)
"""A step of a migration, numbered from 1 over all migrations of the job."""

NO_STEP = StepVersion(0)
"""The number that means no step."""
