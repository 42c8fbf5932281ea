"""Typed names and numbers of a job's parts, so that one kind can't be mistaken for another.

>>> worker_id("count", 0), CheckpointNumber(3)
('count-0', 3)
>>> stage_of(worker_id("word-count", 12)), index_of(worker_id("word-count", 12))
('word-count', 12)
>>> upgraded = worker_id("count", 0, CodeVersion(2))
>>> upgraded, stage_of(upgraded), index_of(upgraded), code_of(upgraded)
('count-0v2', 'count', 0, 2)
"""

from __future__ import annotations

from typing import NewType

CodeVersion = NewType("CodeVersion", int)
"""A version of the code of a job, numbered from 1; each upgrade while the job runs brings the next."""

FIRST_CODE = CodeVersion(1)

WorkerId = NewType("WorkerId", str)
"""A stage and an index, such as `count-0`: the worker that runs that part of the plan, in any process.

Behind them is the version of its code if that isn't the first, such as `count-0v2`.
"""


def worker_id(stage: str, index: int, code: CodeVersion = FIRST_CODE) -> WorkerId:
    """Return the id of worker `index` of a stage, which runs version `code` of the job's code."""
    return WorkerId(f"{stage}-{index}" if code == FIRST_CODE else f"{stage}-{index}v{code}")


def stage_of(worker: WorkerId) -> str:
    """Return the stage of a worker."""
    return worker.rpartition("-")[0]


def index_of(worker: WorkerId) -> int:
    """Return a worker's index in its stage."""
    return int(worker.rpartition("-")[2].partition("v")[0])


def code_of(worker: WorkerId) -> CodeVersion:
    """Return the version of the code that a worker runs."""
    return CodeVersion(int(worker.rpartition("-")[2].partition("v")[2] or FIRST_CODE))


WorkerNumber = NewType("WorkerNumber", int)
"""A worker's number in its job, never reused: a worker that takes the place of another at its index has a number of its own."""

ChannelId = NewType("ChannelId", int)
"""A channel from one worker to another; the number is never reused for another pair."""

Attempt = NewType("Attempt", int)
"""One run of the job's workers, from start to restart.

Messages of earlier attempts are ignored. The upper bits are the coordinator's term.
"""

FIRST_ATTEMPT = Attempt(0)

ATTEMPTS = 1 << 32
"""The numbers of a term's attempts: more than a coordinator ever makes."""


def attempt_name(attempt: Attempt) -> str:
    """Return an attempt as people read it: its number, after its term if that is not the first.

    >>> attempt_name(Attempt(3)), attempt_name(Attempt(2 * ATTEMPTS + 1))
    ('3', '2.1')
    """
    term, number = divmod(attempt, ATTEMPTS)
    return f"{term}.{number}" if term else str(number)


CheckpointNumber = NewType("CheckpointNumber", int)
"""A checkpoint, numbered from 1 over all attempts."""

NO_CHECKPOINT = CheckpointNumber(0)
"""The number that means no checkpoint. A save against it is complete; a job that restores it starts from the beginning."""

StepVersion = NewType("StepVersion", int)
"""A step of a migration, numbered from 1 over all migrations of the job."""

NO_STEP = StepVersion(0)
"""The number that means no step."""
