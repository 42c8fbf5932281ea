"""Loses workers and the coordinator of simulated jobs at any moment, several at once, also during a recovery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...engine.protocol.ids import WorkerId
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.manifest import Manifest
from ..simulation.actions import COORDINATOR, Action, Choice, World, once

AT_FIRST, LATER = 0.03, 0.2
"""Shares of the moments at which a process may be lost: before the first checkpoint, and afterwards."""


def with_crashes(actions: Sequence[Action], most: int = 4, *, later: float = LATER) -> tuple[Action, ...]:
    """Return `actions` with at most `most` crashes, for a job that saves its state.

    `later`: the share of the moments after the first checkpoint; a small one lets chains of changes grow before they are restored.

    `check(make_flow, seeds, save_state=True, actions=with_crashes(ACTIONS))`
    """

    def crash(world: World) -> Iterator[Choice]:
        core = world.coordinator.core
        share = AT_FIRST if core.checkpoints.newest is None else later
        if world.accidents < most and not core.state.final and world.random.random() < share:
            for name, worker in world.workers.items():
                if not worker.dead:
                    yield from once(worker, "crash", _crash, world, name)
            if core.state is not JobState.STARTING:
                yield Choice(COORDINATOR, "crash", _lose_coordinator, (world,))

    return *actions, crash, notice


def with_damage(actions: Sequence[Action], most: int = 2) -> tuple[Action, ...]:
    """Return `actions` with at most `most` damages of the newest checkpoint, each with the loss of a worker or the coordinator at the same
    moment.

    Without another checkpoint the job starts from the beginning. For a job that saves its state, with the actions of `with_crashes`.
    """

    def damage(world: World) -> Iterator[Choice]:
        core = world.coordinator.core
        if world.damages < most and core.state is JobState.RUNNING and core.checkpoints.newest is not None:
            yield Choice(COORDINATOR, "damage", _damage, (world, core.checkpoints.newest))

    return *actions, damage


def with_lost_manifests(actions: Sequence[Action], most: int = 2) -> tuple[Action, ...]:
    """Return `actions` with at most `most` deletions of manifests: the newest, some or all, or the whole folder, at any moment.

    Mostly the coordinator is lost at the same moment. For a job that saves its state, with the actions of `with_crashes`.
    """

    def lose(world: World) -> Iterator[Choice]:
        coordinator = world.coordinator
        if world.deletions < most and not coordinator.core.state.final and not coordinator.all_storage.empty:
            yield Choice(COORDINATOR, "delete", _delete, (world,))

    return *actions, lose


def notice(world: World) -> Iterator[Choice]:
    """Let the coordinator detect the loss of a worker."""
    if world.coordinator.wanted is None and not world.coordinator.core.state.final:
        for name, worker in world.workers.items():
            if worker.dead:
                yield Choice(COORDINATOR, "notice", _notice, (world, name))


def _crash(world: World, name: WorkerId) -> None:
    world.accidents += 1
    world.workers[name].die()


def _lose_coordinator(world: World) -> None:
    world.accidents += 1
    world.coordinator = world.coordinator.lose()


def _damage(world: World, newest: Manifest) -> None:
    world.damages += 1
    world.coordinator.all_storage.damage(newest, world.random)
    living = [name for name, worker in world.workers.items() if not worker.dead]
    if living and world.random.random() < 0.7:
        _crash(world, world.random.choice(living))
    else:
        _lose_coordinator(world)


def _delete(world: World) -> None:
    world.deletions += 1
    world.coordinator.all_storage.lose(world.random)
    if world.random.random() < 0.7:
        _lose_coordinator(world)


def _notice(world: World, name: WorkerId) -> None:
    world.coordinator.interpreter.lost(name, "it was killed")
