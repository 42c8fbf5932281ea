"""The phases of an upgrade, from the job's reports and from the workers that it had.

>>> Phase("watch", 2.0, 7.0).seconds
5.0
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import evenflow as ef

from ...engine.protocol.ids import FIRST_CODE, WorkerId, code_of, index_of, stage_of
from ...scheduler.protocol.reports import OperationReport
from ...scheduler.record.upgrade import Task
from ..harness.background import Background

MOVES = (Task.CANARY, Task.EMPTY, Task.CLEAR)
"""The steps that are migrations, with reports of their own."""

CHECKPOINT, START, ATTACH, WATCH, DETACH, LEAVE = (
    "checkpoint", "start of the additional worker", "its channels", "watch", "exchange of channels, and leave", "leave"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase from `begun` to `ended`, seconds since the epoch."""

    name: str
    begun: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.begun


class WorkersWatch(Background):
    """The time at which each worker with new code of an operator joined its job, sampled every 20 ms."""

    def __init__(self, job: ef.Job, operator: str) -> None:
        super().__init__(0.02, "workers")
        self._job, self._operator = job, operator
        self.joined: dict[WorkerId, float] = {}

    def _step(self) -> None:
        with suppress(ef.JobError):
            now = time.time()
            for worker in self._job.status().workers:
                if stage_of(worker) == self._operator and code_of(worker) != FIRST_CODE:
                    self.joined.setdefault(worker, now)


def phases(
    upgrade: OperationReport,
    checkpoints: Sequence[OperationReport],
    moves: Sequence[OperationReport],
    joined: dict[WorkerId, float],
    parallelism: int,
) -> list[Phase]:
    """Return the phases of an upgrade of one keyed operator with `parallelism` workers and a canary, in order.

    A replacement's start includes the wait for its turn: until no checkpoint is under way.
    """
    return list(_phases(upgrade, checkpoints, moves, {index_of(worker): at for worker, at in joined.items()}, parallelism))


def _phases(
    upgrade: OperationReport,
    checkpoints: Sequence[OperationReport],
    moves: Sequence[OperationReport],
    joined: dict[int, float],
    parallelism: int,
) -> Iterator[Phase]:
    begun, ended = _span(upgrade)
    saved = next((_span(report)[1] for report in checkpoints if report.reason == f"for upgrade {upgrade.number}"), begun)
    yield Phase(CHECKPOINT, begun, saved)
    yield Phase(START, saved, joined[parallelism])
    canary, *emptied, cleared = _moves_of(upgrade, moves)
    yield Phase(ATTACH, joined[parallelism], canary.begun)
    yield canary
    yield Phase(WATCH, canary.ended, emptied[0].begun)
    for index, (move, following) in enumerate(zip(emptied, [*emptied[1:], cleared], strict=True)):
        yield Phase(f"worker {index}: {move.name}", move.begun, move.ended)
        yield Phase(f"worker {index}: start of its replacement", move.ended, joined[index])
        yield Phase(f"worker {index}: {DETACH}", joined[index], following.begun)
    yield cleared
    yield Phase(f"{LEAVE} of the additional worker", cleared.ended, ended)


def _moves_of(upgrade: OperationReport, moves: Sequence[OperationReport]) -> Iterator[Phase]:
    for move in moves:
        for task in MOVES:
            if move.reason == f"upgrade {upgrade.number}: {task.value}":
                yield Phase(task.value, *_span(move))


def _span(report: OperationReport) -> tuple[float, float]:
    begun = report.began_at or 0.0
    return begun, begun + (report.seconds or 0.0)
