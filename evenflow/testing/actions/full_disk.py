"""Makes storage full, slow or unreachable for a while, at any moment of a simulated job's checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..simulation.actions import Action, Choice, OfWorker, World, once
from ..simulation.storage import Storage
from ..simulation.workers import Worker

DISK = "the disk"

WRITTEN, ELSE, OVER = 0.3, 0.005, 0.05
"""Shares of the moments at which trouble may begin: while a checkpoint is written, and at others; and at which it ends."""


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
    """True if a checkpoint is being written."""
    return world.coordinator.storage.saves or any(worker.may_save or worker.may_write for worker in world.workers.values())


@OfWorker
def write_state(worker: Worker, _world: World) -> list[Choice]:
    """Write a worker's state for a checkpoint, or fail."""
    return once(worker, "write state", worker.write) if worker.may_write else []


def _trouble(storage: Storage, trouble: str) -> None:
    storage.troubles[trouble] += 1
    setattr(storage, trouble, True)
