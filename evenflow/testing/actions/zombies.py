"""Zombies in simulated jobs: workers and coordinators that are declared lost, and are not.

A worker that slept for too long continues in an attempt that has ended, a coordinator with all of its workers next to its replacement.
Their further messages, writes, checkpoints and commits must have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...engine.protocol.ids import WorkerId
from ...scheduler.protocol.effects import JobState
from ..simulation.actions import ACTIONS, COORDINATOR, TIME, Action, Choice, OfWorker, World
from .crashing import AT_FIRST, LATER

STEPS = (5, 40, 400)
"""Numbers of steps after which a zombie may end."""


def with_zombies(actions: Sequence[Action], most: int = 3) -> tuple[Action, ...]:
    """Return `actions` with at most `most` times a worker or the coordinator that is declared lost but continues for a while.

    `check(make_flow, seeds, save_state=True, actions=with_zombies(with_crashes(ACTIONS)))`
    """

    def forsake(world: World) -> Iterator[Choice]:
        core, coordinator = world.coordinator.core, world.coordinator
        share = AT_FIRST if core.checkpoints.newest is None else LATER
        if world.zombies_made >= most or core.state.final or world.random.random() >= share:
            return
        if core.state is not JobState.STARTING:
            yield Choice(COORDINATOR, "take for lost", _take_coordinator_for_lost, (world,))
        if coordinator.wanted is None:
            for name, worker in world.workers.items():
                if not worker.dead:
                    yield Choice(COORDINATOR, "take for lost", _take_for_lost, (world, name))

    return *actions, forsake, haunt


def haunt(world: World) -> Iterator[Choice]:
    """Let zombies continue as if nothing had happened."""
    world.superseded += sum(zombie.coordinator.superseded for zombie in world.zombies if not zombie.alone)
    world.zombies[:] = [zombie for zombie in world.zombies if zombie.steps_left and (zombie.alone or not zombie.coordinator.superseded)]
    for zombie in world.zombies:
        if zombie.alone:
            zombie.coordinator = world.coordinator  # what it says reaches whichever runs the job
        for action in ACTIONS:
            if zombie.alone and not isinstance(action, OfWorker):
                continue
            for choice in action(zombie):
                if (known := zombie.known.get(choice)) is None:
                    who = TIME if choice.who == TIME else f"zombie of {choice.who}"
                    known = zombie.known[choice] = Choice(who, f"zombie: {choice.kind}", _step, (zombie, choice))
                yield known


def _step(zombie: World, choice: Choice) -> None:
    zombie.steps_left -= 1
    for worker in zombie.workers.values():
        worker.choices = None
    choice.run(*choice.arguments)


def _take_coordinator_for_lost(world: World) -> None:
    """Replace the coordinator as Ray does; the old one continues with its workers."""
    left, workers = world.coordinator, dict(world.workers)
    left.leave_alone(workers)
    _add(world, World(world.random, world.channels, workers, left, world.clock))
    world.workers.clear()
    world.coordinator = left.lose()


def _take_for_lost(world: World, name: WorkerId) -> None:
    """Declare a worker lost: it has not answered for too long."""
    left = {name: world.workers.pop(name)}
    _add(world, World(world.random, world.channels, left, world.coordinator, world.clock, alone=True))
    world.coordinator.interpreter.lost(name, "it has not answered")


def _add(world: World, zombie: World) -> None:
    world.zombies_made += 1
    zombie.steps_left = world.random.choice(STEPS)
    world.zombies.append(zombie)
