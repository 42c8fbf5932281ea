"""Keeps the worlds of simulated runs, so that a test can tell what has happened in them."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.scheduler.job.core import JobCore
from evenflow.testing.simulation.actions import Choice, World


class Watcher:
    """An action that never does anything, but keeps the worlds that it sees."""

    def __init__(self) -> None:
        self.worlds: list[World] = []

    def __call__(self, world: World) -> Iterator[Choice]:
        if not self.worlds or self.worlds[-1] is not world:
            self.worlds.append(world)
        return iter(())

    @property
    def cores(self) -> list[JobCore]:
        """Return the newest coordinator's core of each world."""
        return [world.coordinator.core for world in self.worlds]
