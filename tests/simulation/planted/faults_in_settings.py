"""Faults in the change of a running job's settings."""

from __future__ import annotations

import pytest

from evenflow.scheduler.parts.checkpointing import Checkpointing
from evenflow.scheduler.parts.live_settings import LiveSettings
from evenflow.testing.simulation.storage import MemoryStorage

Patch = pytest.MonkeyPatch


def changed_settings_are_not_remembered(patch: Patch) -> None:
    patch.setattr(LiveSettings, "_remember", lambda self: None)


def store_forgets_the_settings_of_a_coordinator_that_took_over(patch: Patch) -> None:
    remember = MemoryStorage.remember_settings

    def of_the_first(self: MemoryStorage, settings: object, term: int) -> None:
        if term == 0:
            remember(self, settings, term)

    patch.setattr(MemoryStorage, "remember_settings", of_the_first)


def interval_that_changes_is_not_restarted(patch: Patch) -> None:
    patch.setattr(Checkpointing, "reschedule", lambda self, before: None)


def workers_that_start_later_have_the_first_settings(patch: Patch) -> None:
    patch.setattr(LiveSettings, "greet", lambda self, worker: None)
