"""The operator `explode`: a row for each element of a list column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...batch import Batch
from ...columns import UNKNOWN, Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...updates import Updates
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Explode(Operator):
    """An operator that replaces `column` by its elements, structs by their fields; `position`: a column that numbers them from 1."""

    column: str
    position: str | None = None

    checked_at_once = True

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        known = inputs[0]
        if known.lacks(self.column):
            return f"no column `{self.column}`; there are: {known.listed()}"
        return twice_problem(self.column, self._names(known))

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        known = inputs[0]
        if known.elements(self.column) is None:
            return UNKNOWN
        types = {name: kind for name, kind in known.types.items() if name != self.column}
        return Columns({name: types.get(name) for name in self._names(known)}, known.complete)

    def _names(self, known: Columns) -> list[str]:
        """Return the names of the result's columns that are known."""
        others = [name for name in known.types if name != self.column]
        return [*others, *([self.position] if self.position is not None else []), *(known.elements(self.column) or ())]

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        before = inputs[0]
        if before is None or before.key is None:
            return before
        return replace(before, key=(*before.key, self.position) if self.position is not None else None)

    def weighed(self) -> Operator:
        return self

    def open(self, context: Context) -> ExplodeInstance:
        return ExplodeInstance(self, context)

    def describe(self) -> str:
        return self.column if self.position is None else f"{self.column}, numbered in {self.position}"


class ExplodeInstance(OperatorInstance):
    """An instance without state. A row keeps its event time in each of its copies; a row without elements is dropped."""

    def __init__(self, operator: Explode, context: Context) -> None:
        super().__init__(context)
        self.column, self.position = operator.column, operator.position

    def process(self, batch: Batch, emit: Emit) -> None:
        lists = self._lists(batch.rows)
        if lists is None:
            return
        parents: npt.NDArray[np.int64] = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
        if not len(parents):
            return
        place = pa.array(parents)
        names: list[str] = []
        columns: list[pa.Array] = []
        for name, column in zip(batch.rows.schema.names, batch.rows.columns, strict=True):
            if name != self.column:
                names.append(name)
                columns.append(column.take(place))
                continue
            if self.position is not None:
                names.append(self.position)
                columns.append(pa.array(_numbered(parents)))
            elements = pc.list_flatten(lists)
            if pa.types.is_struct(elements.type):
                names += [field.name for field in elements.type]
                columns += elements.flatten()
            else:
                names.append(name)
                columns.append(elements)
        problem = twice_problem(self.column, names)
        if problem is not None:
            raise RecordError(self.context.name, problem)
        emit(Batch(pa.RecordBatch.from_arrays(columns, names=names), None if batch.times is None else batch.times[parents]))

    def _lists(self, rows: pa.RecordBatch) -> pa.Array | None:
        """Return the list column; None if it holds only nulls and has no type. Raises RecordError if it is missing."""
        schema = rows.schema
        if schema.get_field_index(self.column) < 0:
            raise RecordError(self.context.name, f"no column `{self.column}`; there are: {', '.join(schema.names)}")
        column = rows.column(self.column)
        if pa.types.is_null(column.type):
            return None
        if not any(check(column.type) for check in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)):
            problem = f"explode(`{self.column}`): the column is of type {column.type}, expected lists"
            raise RecordError(self.context.name, f"{problem}, for example those of ef.top or ef.collect")
        return column


def twice_problem(column: str, names: list[str]) -> str | None:
    """Describe the problem of results with duplicate names; None without one."""
    twice = next((name for name in names if names.count(name) > 1), None)
    return twice and (
        f"explode(`{column}`): two columns would have the name `{twice}`: rename or drop one in front of it, or choose "
        "columns=[...] in ef.top"
    )


def _numbered(parents: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of each element in its list, from 1."""
    first = np.flatnonzero(np.diff(parents, prepend=-1))
    numbers: npt.NDArray[np.int64] = np.arange(1, len(parents) + 1) - np.repeat(first, np.diff(first, append=len(parents)))
    return numbers
