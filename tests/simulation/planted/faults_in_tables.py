"""Faults in the rows of tables: the newest change of a key is taken for another one, or deleted rows leave no trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evenflow.engine.aggregates.lists.top import TopAccumulator
from evenflow.engine.aggregates.ragged import joined
from evenflow.engine.operators.aggregation.aggregate_weights import AggregateWeightsInstance
from evenflow.engine.operators.rows import table_rows
from evenflow.engine.table_changes import DELETED

Patch = pytest.MonkeyPatch


def change_that_arrives_last_is_the_newest(patch: Patch) -> None:
    """Keep the change that arrives last, whatever its offset is."""

    def merge(_self: Any, left: Any, right: Any) -> Any:
        takes = right[0].counts > 0
        places = np.where(takes, np.arange(len(takes)) + len(takes), np.arange(len(takes)))
        return (joined([left[0], right[0]])[places],)

    patch.setattr(TopAccumulator, "merge", merge)


def deleted_key_is_forgotten(patch: Patch) -> None:
    """Remove a key from the state with its row: an earlier change that arrives afterwards brings the row back."""
    process = AggregateWeightsInstance.process

    def forgetting(self: Any, batch: Any, emit: Any) -> None:
        process(self, batch, emit)
        if table_rows.NEWEST not in self.aggregator.functions:
            return
        partial, _ = self._partial(batch)
        _, after = self.state.known(partial.keys)
        rows = self._results(replace(after, keys=partial.keys))
        gone = pc.list_flatten(rows.column(table_rows.NEWEST)).field(DELETED)
        if pc.any(gone).as_py():
            self.state.remove([key.filter(gone) for key in partial.keys])

    patch.setattr(AggregateWeightsInstance, "process", forgetting)


def deleted_rows_are_emitted(patch: Patch) -> None:
    newest = table_rows._newest

    def undeleted(batch: Any) -> Any:
        found = newest(batch)
        columns = found.flatten()
        columns[found.type.get_field_index(DELETED)] = pa.array([False] * len(found))
        return pa.StructArray.from_arrays(columns, fields=list(found.type))

    patch.setattr(table_rows, "_newest", undeleted)
