"""Faults in rows with weights: rows that are added but not taken back, or taken back as they never were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evenflow.engine.aggregates.numbers.exact import ExactAddends
from evenflow.engine.aggregates.partial_aggregates import PartialAggregates
from evenflow.engine.keyed_state.memory.memory_table import MemoryTable
from evenflow.engine.operators.aggregation.aggregate_weights import AggregateWeightsInstance

Patch = pytest.MonkeyPatch


def old_row_of_a_restored_key_is_not_taken_back(patch: Patch) -> None:
    """Take a key's row back only if this worker has added it: not one that it restored, or that moved to it."""
    known, install = MemoryTable.known, MemoryTable.install

    def installed(self: Any, chunk: Any) -> None:
        install(self, chunk)
        self.strange = getattr(self, "strange", 0) + 1

    def own(self: Any, keys: Any) -> Any:
        places, before = known(self, keys)
        if not getattr(self, "strange", 0):
            return places, before
        self.strange = 0
        return places[:0], PartialAggregates((), before.rows[:0], tuple(tuple(part[:0] for part in parts) for parts in before.parts))

    patch.setattr(MemoryTable, "install", installed)
    patch.setattr(MemoryTable, "known", own)


def old_row_is_read_after_the_batch_has_changed_it(patch: Patch) -> None:
    """Read old rows from the state as it is after the batch: both rows are equal, and nothing is emitted."""
    known = MemoryTable.known

    def process(self: Any, batch: Any, emit: Any) -> None:
        partial, times = self._partial(batch)
        after = self.state.merge(partial)
        places, before = known(self.state, partial.keys)
        old = self._results(replace(before, keys=partial.keys))
        there = np.ones(len(partial), np.bool_)
        self._emit_weights(old, places, self._results(after), there, there, times, emit)

    patch.setattr(AggregateWeightsInstance, "process", process)


def taken_back_values_are_added(patch: Patch) -> None:
    patch.setattr(ExactAddends, "negated", lambda _self, limbs: limbs)


def group_with_more_rows_gone_than_come_counts_as_there(patch: Patch) -> None:
    """Emit groups whose rows overtook each other as if they had some."""
    patch.setattr(AggregateWeightsInstance, "_there", lambda _self, partial: np.ones(len(partial), np.bool_))
