"""Changes the settings of simulated jobs at random moments, and checks that they hold: in the job, its workers and later coordinators.

The rows must stay those of the oracle, whatever the settings are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from ...engine.time.duration import seconds
from ...scheduler.configs.changes import differences
from ...scheduler.configs.job import LIVE, JobConfig
from ...scheduler.job.core import JobCore
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.requests import ChangeSettings
from ..simulation.actions import COORDINATOR, Action, Choice, World
from ..simulation.coordinator import SimulatedCoordinator
from ..simulation.network import SimulationError

SHARE = 0.1
"""The share of the moments of a running job at which its settings may change."""

VALUES: dict[str, tuple[Any, ...]] = {
    "checkpoint.interval": (None, "1ms", "20ms", "500ms", 3.0),
    "checkpoint.pause": (0, "5ms", "100ms"),
    "checkpoint.timeout": ("1m", "10m"),
    "restart.delay": (0, "5ms"),
    "balance.policy": ("off", "hotspot", "lpt"),
    "balance.threshold": (1.1, 1.5),
    "balance.cooldown": ("50ms", "200ms"),
    "autoscale.max_parallelism": (3, 4),
    "migration_strategy": LIVE,
    "linger": (0, "1ms", "30ms"),
    "log_level": (None, "info"),
}
"""The values that settings are given. Those with which accidents would end the job stay as they are."""


def with_new_settings(actions: Sequence[Action]) -> tuple[Action, ...]:
    """Return `actions` with changes of the job's settings, and checks that the settings hold."""
    holds = SettingsHold()

    def reconfigure(world: World) -> Iterator[Choice]:
        if world.coordinator.core.state is JobState.RUNNING and world.random.random() < SHARE:
            yield Choice(COORDINATOR, "reconfigure", _reconfigure, (world, holds))

    return *actions, reconfigure, holds


class SettingsHold:
    """An action without effect that checks after each step that the settings hold.

    `changes`: the number of changes so far, `checks`: those of another coordinator's settings.
    """

    def __init__(self) -> None:
        self.changes = self.checks = 0
        self._world: World | None = None
        self._of: tuple[SimulatedCoordinator, int] | None = None
        self._possible: list[JobConfig] = []
        """The settings that a later coordinator may have: those of now, and earlier ones while newer ones are not remembered yet."""
        self._changed_at, self._began_at = 0.0, 0.0
        self._attempt: tuple[JobCore, int] | None = None
        self._overdue_at: float | None = None

    def changed(self, now: float) -> None:
        """Note that settings have changed."""
        self.changes += 1
        self._changed_at = now

    def __call__(self, world: World) -> Iterator[Choice]:
        """Check the settings. Raises SimulationError."""
        coordinator, config = world.coordinator, world.coordinator.core.record.config
        if self._world is not world:
            self._world, self._of, self._changed_at = world, None, 0.0
        if self._of is None or self._of[0] is not coordinator:
            self._check_another(world, config)
            self._of = coordinator, world.restarts
        self._possible = [*self._possible, config] if coordinator.storage.remembers_settings else [config]
        self._check_linger(world, config)
        self._check_interval(world, config)
        return iter(())

    def _check_another(self, world: World, config: JobConfig) -> None:
        """Check the settings of a coordinator in its first step."""
        if self._of is None or self._of[1] != world.restarts:  # a start of the program
            return
        self.checks += 1
        if all(differences(one, config) for one in self._possible):
            lost = ", ".join(map(str, differences(self._possible[-1], config)))
            raise SimulationError(f"the job's next coordinator has other settings: {lost}")

    def _check_linger(self, world: World, config: JobConfig) -> None:
        """Check the workers that have carried out all commands."""
        core, linger = world.coordinator.core, seconds(config.network.linger)
        for name in core.record.ready.intersection(core.workers, world.workers):
            worker = world.workers[name]
            if worker.dead or worker.attempt != core.attempt or worker.commands.under_way:
                continue
            if worker.task.outputs.linger != linger:
                raise SimulationError(f"{name} has a linger of {worker.task.outputs.linger} s, and the job one of {linger} s")

    def _check_interval(self, world: World, config: JobConfig) -> None:
        """Check that a checkpoint has begun if the interval has passed since the last one, the start, and the last change."""
        core, interval = world.coordinator.core, config.checkpoint.interval_s
        job, now = core.record, world.coordinator.ticked_at
        if self._attempt != (core, core.attempt):
            self._attempt, self._began_at = None, world.now
            if core.state is JobState.RUNNING:
                self._attempt = core, core.attempt
        could = core.state is JobState.RUNNING and core.checkpointing.free and not (job.stop_wanted or job.in_step) and bool(job.reading)
        if interval is None or not could:
            self._overdue_at = None
            return
        ends = [one.began_at + one.seconds for one in core.checkpointing.reports() if one.began_at is not None and one.seconds is not None]
        due = max(self._changed_at, self._began_at, *ends) + max(interval, config.checkpoint.pause_s)
        if now <= due:
            self._overdue_at = None
        elif self._overdue_at is None:
            self._overdue_at = now
        elif now > self._overdue_at:
            raise SimulationError(f"no checkpoint has begun at {now:g} s; by an interval of {interval:g} s it was due at {due:g} s")


def _reconfigure(world: World, holds: SettingsHold) -> None:
    """Change one to three settings."""
    drawn = _drawn(world.random)
    if not world.coordinator.core.record.config.metrics.enabled:
        drawn.pop("balance.policy", None)  # a chosen balancer would be refused
    world.coordinator.ask(ChangeSettings(drawn))
    holds.changed(world.now)


def _drawn(random: Random) -> dict[str, Any]:
    return {name: random.choice(VALUES[name]) for name in random.sample(list(VALUES), random.randint(1, 3))}
