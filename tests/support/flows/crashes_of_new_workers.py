"""Accidents for simulated jobs: something is lost whose newest checkpoint has workers that own no keys yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.simulation.actions import Action, Choice, World


def with_crashes_of_new_workers(actions: Sequence[Action], most: int = 4) -> tuple[Action, ...]:
    """Return `with_crashes(actions, most)`, with crashes only at such moments."""
    *others, crash, notice = with_crashes(actions, most)

    def early(world: World) -> Iterator[Choice]:
        newest = world.coordinator.core.checkpoints.newest
        if newest is not None and any(len(table.workers) < len(newest.tasks[stage]) for stage, table in newest.tables.items()):
            yield from crash(world)

    return *others, early, notice
