"""Storage and sinks of simulated jobs that fail for a while.

Storage is full, slow or out of reach at any moment of a checkpoint. A commit fails before or after it has taken effect; in the
latter case the job does not learn of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..simulation.actions import Action, Choice, OfWorker, World, once
from ..simulation.storage import MemoryStorage
from ..simulation.workers import SimulatedWorker

DISK, SINKS = "the disk", "the sinks"

WRITTEN, ELSE, OVER = 0.3, 0.005, 0.05
"""Shares of the moments at which trouble may begin: while a checkpoint is written, and at others; and at which it ends."""

SHARE = 0.05
"""The share of storage's moments at which a commit may begin to fail."""


def with_full_disk(actions: Sequence[Action], most: int = 3, troubles: Sequence[str] = ("full", "slow")) -> tuple[Action, ...]:
    """Return `actions` with at most `most` times each of full and slow storage. For a job that saves its state.

    Another of the `troubles` is `unreachable` storage. `check(make_flow, seeds, save_state=True,
    actions=with_full_disk(with_crashes(ACTIONS)))`
    """

    def change(world: World) -> Iterator[Choice]:
        storage = world.coordinator.all_storage
        for trouble in troubles:
            if getattr(storage, trouble):
                setattr(storage, trouble, world.random.random() >= OVER)  # whatever else happens meanwhile, and however often
            elif storage.troubles[trouble] < most:
                chance = world.random.random()
                if chance < WRITTEN and (chance < ELSE or _is_written(world)):
                    yield Choice(DISK, trouble, _trouble, (storage, trouble))

    return *actions, write_state, change


def _is_written(world: World) -> bool:
    return world.coordinator.storage.saves or any(worker.may_save or worker.may_write for worker in world.workers.values())


@OfWorker
def write_state(worker: SimulatedWorker, _world: World) -> list[Choice]:
    """List the end of the writing of a worker's state, or its failure."""
    return once(worker, "write state", worker.write) if worker.may_write else []


def _trouble(storage: MemoryStorage, trouble: str) -> None:
    storage.troubles[trouble] += 1
    setattr(storage, trouble, True)


def with_failing_commits(actions: Sequence[Action], most: int = 4) -> tuple[Action, ...]:
    """Return `actions` with at most `most` commits that fail. For a job that saves its state.

    `check(make_flow, seeds, save_state=True, actions=with_failing_commits(with_crashes(ACTIONS)))`
    """

    def fail(world: World) -> Iterator[Choice]:
        storage = world.coordinator.all_storage
        may = storage.commits_failed < most and not storage.checks_until_failure
        if may and world.coordinator.storage.waits and world.random.random() < SHARE:
            yield Choice(SINKS, "fail", _fail, (storage, world.random.choice((1, 2))))

    return *actions, fail


def _fail(storage: MemoryStorage, checks: int) -> None:
    storage.checks_until_failure = checks
