"""Starts simulated programs again, after everything was lost or while the job still runs; and loses replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...scheduler.protocol.effects import JobState
from ..simulation.actions import COORDINATOR, Action, Choice, World
from .crashing import AT_FIRST, LATER
from .failing_storage import DISK
from .zombies import STEPS, haunt


def with_restarts(actions: Sequence[Action], most: int = 2, parallelism: Sequence[int | None] = (None,)) -> tuple[Action, ...]:
    """Return `actions` with at most `most` restarts of the program: after everything was lost, or as a take-over from a running start.

    `parallelism`: of another start, None for that of the previous one; rows of other numbers of source workers arrive in another order.
    Before the job begins, another run has left its checkpoints. `check(make_flow, seeds, save_state=True, actions=with_restarts(ACTIONS))`
    """

    def begin(world: World) -> Iterator[Choice]:
        """Add another run's checkpoints once, before any other use of the storage."""
        storage = world.coordinator.all_storage
        if not storage.after and storage.empty and not world.restarts and world.coordinator.core.checkpoints.last == 0:
            storage.add_another_run()
            world.coordinator.core.checkpoints.last = storage.after
        return iter(())

    def again(world: World) -> Iterator[Choice]:
        coordinator, core = world.coordinator, world.coordinator.core
        share = AT_FIRST if core.checkpoints.newest is None else LATER
        if world.restarts >= most or core.state.final or core.state is JobState.STARTING or world.random.random() >= share:
            return
        if not coordinator.all_storage.unreachable and coordinator.may_start_again:
            workers = world.random.choice(parallelism)
            yield Choice(COORDINATOR, "start again", _start_again, (world, workers))
            yield Choice(COORDINATOR, "take over", _take_over, (world, workers))

    return (*actions, begin, again, *(() if haunt in actions else (haunt,)))


def with_lost_replies(actions: Sequence[Action], most: int = 3) -> tuple[Action, ...]:
    """Return `actions` with at most `most` lost replies of manifests. For a job that saves its state."""

    def lose(world: World) -> Iterator[Choice]:
        storage = world.coordinator.all_storage
        if world.coordinator.storage.saves and not storage.loses_reply and storage.troubles["lost replies"] < most:
            yield Choice(DISK, "lose reply", _lose_reply, (world,))

    return *actions, lose


def _lose_reply(world: World) -> None:
    storage = world.coordinator.all_storage
    storage.troubles["lost replies"] += 1
    storage.loses_reply = True


def _start_again(world: World, parallelism: int | None) -> None:
    """Lose all processes, and start the same program."""
    for worker in world.workers.values():
        worker.close()
    world.workers.clear()
    world.restarts += 1
    world.coordinator = world.coordinator.start_again(parallelism)


def _take_over(world: World, parallelism: int | None) -> None:
    """Let another start take the run over, while the previous one and its workers still run."""
    left, workers = world.coordinator, dict(world.workers)
    left.leave_alone(workers)
    zombie = World(world.random, world.channels, workers, left, world.clock)
    world.zombies_made += 1
    zombie.steps_left = world.random.choice(STEPS)
    world.zombies.append(zombie)
    world.workers.clear()
    world.restarts += 1
    world.coordinator = left.start_again(parallelism)
