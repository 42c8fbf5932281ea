"""Storage that is full, or slow, for a while: at any moment of a simulated job's checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .actions import Action, Choice, OfWorker, World
from .storage import Storage
from .workers import Worker

DISK = "the disk"

UNDER_WAY, ELSE, OVER = 0.3, 0.03, 0.05
"""Shares of the moments at which trouble may begin: while a checkpoint is under way, and at others; and at which it ends."""


def with_full_disk(actions: Sequence[Action], most: int = 3) -> tuple[Action, ...]:
    """`actions`, and at most `most` times each the storage is full, and slow, for a while. For a job that saves its state.

    `check(make_flow, seeds, save_state=True, actions=with_full_disk(with_crashes(ACTIONS)))`
    """
    left: dict[int, dict[str, int]] = {}

    def change(world: World) -> Iterator[Choice]:
        storage = world.coordinator.storage
        times = left.setdefault(id(world), {"full": most, "slow": most})
        begins = UNDER_WAY if world.coordinator.core.checkpoints.pending is not None else ELSE
        for trouble, count in times.items():
            if getattr(storage, trouble):
                setattr(storage, trouble, world.random.random() >= OVER)  # whatever else happens meanwhile, and however often
            elif count and world.random.random() < begins:
                yield Choice(DISK, trouble, _trouble, (storage, trouble, times))

    return *actions, write_state, change


@OfWorker
def write_state(worker: Worker, _world: World) -> list[Choice]:
    """A worker's state for a checkpoint has been written, or can't be."""
    return [Choice(worker.name, "write state", worker.write)] if worker.may_write else []


def _trouble(storage: Storage, trouble: str, times: dict[str, int]) -> None:
    times[trouble] -= 1
    setattr(storage, trouble, True)
