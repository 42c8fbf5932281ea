"""Reads of a key's state while the job runs: the worker that has it is asked, again if it has given the key away by then.

Invariant: a read has at most one question under way. Nothing that is lost on the way is missed, because callers repeat their request until
it is answered: a read of an earlier attempt, or of a worker that has left, is asked again.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from ...engine.errors import JobBusyError, JobNotRunningError, RequestError
from ...engine.operators.keyed import KeyedOperator
from ...engine.plan.physical import Stage
from ...engine.protocol.effects import StateRead
from ...engine.protocol.ids import Attempt, WorkerId
from ...engine.protocol.read_value import KeyToRead
from ..protocol.effects import JobState, Tell
from ..protocol.messages import ReadState
from ..protocol.requests import KeyAnswer, ReadKey
from ..record.job_record import JobRecord
from .key_splits import hash_in

MOST = 1_000
"""The most reads at once."""

FORGOTTEN_AFTER = 60.0
"""Seconds after which a read is forgotten that no caller asks for any more."""


@dataclass(slots=True)
class _Read:
    """A read that is not answered. `asked`: the worker and the number of its question, None if none is under way.

    `absent`: its owner has no state of the key, and no keys to compare the key's type with: `compared` are the workers that don't either.
    `tries`: the number of times that a worker was asked.
    """

    stage: str
    key: Hashable
    hash64: int
    wanted_at: float = 0.0
    asked: tuple[WorkerId, int] | None = None
    attempt: Attempt | None = None
    tries: int = 0
    absent: bool = False
    compared: set[WorkerId] = field(default_factory=set)
    answer: KeyAnswer | None = None
    problem: str | None = None


class KeyReads:
    """The reads of one job's keys."""

    def __init__(self, job: JobRecord) -> None:
        self._job = job
        self._reads: dict[str, _Read] = {}
        self._asked = 0

    def ask(self, request: ReadKey) -> KeyAnswer | None:
        """Return the answer, None while there is none.

        Raises RequestError for an operator or a key that can't be read, JobNotRunningError if the job has ended, JobBusyError for too
        many reads at once.
        """
        job = self._job
        read = self._reads.get(request.token)
        if job.state.final:
            raise JobNotRunningError(f"job `{job.name}` is {job.state}: keys can only be read while it runs")
        if read is None:
            stage = readable_stage(job, request.operator)
            self._make_room()
            read = self._reads[request.token] = _Read(stage.name, request.key, hash_in(stage, request.key))
        read.wanted_at = job.now
        if read.answer is None and read.problem is None:
            self._advance(read)
            return None
        del self._reads[request.token]
        if read.problem is not None:
            raise RequestError(read.problem)
        return read.answer

    def note(self, worker: WorkerId, found: StateRead) -> None:
        """Note a worker's answer; one to an earlier question is ignored."""
        read = next((read for read in self._reads.values() if read.asked == (worker, found.number)), None)
        if read is None:
            return
        read.asked = None
        if found.problem is not None:
            read.problem = found.problem
        elif read.absent or (found.here and not found.typed):
            read.absent = True
            read.compared.add(worker)
            if found.typed or self._to_compare(read) is None:
                read.answer = KeyAnswer(None)
        elif found.here:
            read.answer = KeyAnswer(found.value)

    def _advance(self, read: _Read) -> None:
        """Ask a worker, unless one is asked already."""
        job = self._job
        if read.attempt != job.attempt:
            read.asked, read.absent, read.attempt = None, False, job.attempt
            read.compared.clear()
        if job.state not in (JobState.RUNNING, JobState.STOPPING) or (read.asked is not None and read.asked[0] in job.workers):
            return
        worker = self._to_compare(read) if read.absent else self._owner(read)
        if worker is None:
            read.answer = KeyAnswer(None)
            return
        self._asked += 1
        read.tries += 1
        read.asked = worker, self._asked
        wanted = KeyToRead(read.key, read.hash64, job.migrations.newest_step, only_type=read.absent)
        job.emit(Tell(worker, ReadState(self._asked, wanted)))

    def _owner(self, read: _Read) -> WorkerId:
        """Return the worker to ask: the key's owner, and while a step moves it, its old owner and its new one in turn."""
        migrations = self._job.migrations
        table, current = migrations.tables[read.stage], migrations.current
        if current is not None and current.in_step and current.stage == read.stage and read.tries % 2:
            table = table.after(current.step.moves)
        return self._job.plan.stage_of(read.stage).workers[int(table.owners(np.array([read.hash64], np.uint64))[0])]

    def _to_compare(self, read: _Read) -> WorkerId | None:
        """Return a worker of the operator that has not compared the key's type."""
        workers = self._job.plan.stage_of(read.stage).workers
        return next((worker for worker in workers if worker not in read.compared), None)

    def _make_room(self) -> None:
        """Forget the reads that no caller asks for any more. Raises JobBusyError if there are too many others."""
        job = self._job
        if len(self._reads) >= MOST:
            self._reads = {token: read for token, read in self._reads.items() if job.now - read.wanted_at < FORGOTTEN_AFTER}
        if len(self._reads) >= MOST:
            raise JobBusyError(f"job `{job.name}`: {MOST} keys are being read; try again, with fewer at once")


def readable_stage(job: JobRecord, operator: str) -> Stage:
    """Return the stage of an operator whose keys can be read. Raises RequestError for any other operator."""
    stage = job.plan.stage_of(operator)
    head = stage.chain[0]
    if not isinstance(head.operator, KeyedOperator) or operator not in (stage.name, head.name):
        readable = ", ".join(s.chain[0].name for s in job.plan.stages if _is_readable(s)) or "none"
        raise RequestError(f"operator `{operator}` has no state by key; operators whose keys can be read: {readable}")
    if not head.operator.readable:
        raise RequestError(
            f"operator `{operator}` has the state of {head.operator.state_description().kind}, in which a key has no one value; keys of "
            'aggregates without windows, stateful_map and process can be read: put aggregate(..., emit="update") behind it, and read that'
        )
    return stage


def _is_readable(stage: Stage) -> bool:
    head = stage.chain[0].operator
    return isinstance(head, KeyedOperator) and head.readable
