"""The names and numbers by which the parts of a job speak of each other, a type for each, so that none is taken for another.

>>> worker_id("count", 0), CheckpointNumber(3)
('count-0', 3)
>>> stage_of(worker_id("word-count", 12)), index_of(worker_id("word-count", 12))
('word-count', 12)
"""

from __future__ import annotations

from typing import NewType

WorkerId = NewType("WorkerId", str)
"""Operator and index, such as `count-0`: who runs that part of the plan, in whatever process."""


def worker_id(stage: str, index: int) -> WorkerId:
    """Name worker `index` of a stage."""
    return WorkerId(f"{stage}-{index}")


def stage_of(worker: WorkerId) -> str:
    """Return the stage of a worker."""
    return worker.rpartition("-")[0]


def index_of(worker: WorkerId) -> int:
    """Return a worker's index in its stage."""
    return int(worker.rpartition("-")[2])


ChannelId = NewType("ChannelId", int)
"""A channel of the plan, from one worker to another; never used again for another pair."""

Attempt = NewType("Attempt", int)
"""From one start of the job's workers to the next: what an earlier one says does not count. The upper bits are the coordinator's term."""

FIRST_ATTEMPT = Attempt(0)

CheckpointNumber = NewType("CheckpointNumber", int)
"""From 1 on, over all attempts."""

NO_CHECKPOINT = CheckpointNumber(0)
"""Stands for none: what is saved against it is the whole state, and a job that goes back to it begins from the start."""

StepVersion = NewType("StepVersion", int)
"""A step of a migration, numbered over all migrations of the job."""
