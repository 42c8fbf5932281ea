"""Faults in the storage of a job's checkpoints, and in starts that continue a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenflow.engine.protocol.ids import NO_CHECKPOINT
from evenflow.scheduler.job.core import JobCore
from evenflow.testing.simulation.job_storage import SimulatedStorage
from evenflow.testing.simulation.storage import MemoryStorage

Patch = pytest.MonkeyPatch


def retention_removes_the_checkpoints_of_another_run(patch: Patch) -> None:
    sweep = MemoryStorage.sweep

    def of_everybody(self: Any, terms: Any) -> None:
        after, self.after = self.after, NO_CHECKPOINT
        sweep(self, terms)
        self.after = after

    patch.setattr(MemoryStorage, "sweep", of_everybody)


def manifest_whose_reply_is_lost_counts_as_failed(patch: Patch) -> None:
    patch.setattr(SimulatedStorage, "_write", lambda self, manifest: self._storage.complete(manifest))
    patch.setattr(SimulatedStorage, "_settle", lambda self: None)


def program_that_is_started_again_begins_anew(patch: Patch) -> None:
    init = JobCore.__init__

    def from_nothing(self: Any, plan: Any, config: Any, begin: Any) -> None:
        init(self, plan, config, replace(begin, manifest=None, committed=NO_CHECKPOINT, resumes=False) if begin.resumes else begin)

    patch.setattr(JobCore, "__init__", from_nothing)
    patch.setattr(SimulatedStorage, "_resumes", property(lambda self: False, lambda self, value: None), raising=False)


def owner_that_was_taken_over_from_goes_on(patch: Patch) -> None:
    patch.setattr(SimulatedStorage, "_in_charge", lambda self: True)


def start_that_continues_forgets_where_the_ones_before_began(patch: Patch) -> None:
    take_over = MemoryStorage.take_over

    def without_terms(self: Any, term: int) -> Any:
        self._begun = {0: self._begun[0]}
        return take_over(self, term)

    patch.setattr(MemoryStorage, "take_over", without_terms)
