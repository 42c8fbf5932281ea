"""The operator `cast`: other types for some columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...needed import Needed
from ...types.casting import cast
from ...updates import Updates
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Cast(Operator):
    """An operator that converts the columns in `types` to their types there; all other columns, and the order, stay."""

    types: Mapping[str, pa.DataType]

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return inputs[0]

    def open(self, context: Context) -> CastInstance:
        return CastInstance(self, context)

    def weighed(self) -> Operator:
        return self

    def needs(self, wanted: Needed | None) -> Needed | None:
        return None if wanted is None else wanted.with_names(self.types)

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return inputs[0].having(self.types)

    def describe(self) -> str:
        return ", ".join(f"{name} to {kind}" for name, kind in self.types.items())


class CastInstance(OperatorInstance):
    """An instance without state."""

    def __init__(self, operator: Cast, context: Context) -> None:
        super().__init__(context)
        self._types = operator.types

    def process(self, batch: Batch, emit: Emit) -> None:
        rows = batch.rows
        for name, kind in self._types.items():
            place = rows.schema.get_field_index(name)
            if place < 0:
                raise RecordError(self.context.name, f"no column `{name}`; there are: {', '.join(rows.schema.names)}")
            try:
                rows = rows.set_column(place, name, cast(rows.column(place), kind))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise RecordError(self.context.name, f"column `{name}` can't be cast from {rows.column(place).type}: {error}") from error
        emit(batch.with_rows(rows))
