"""`cast`: other types for some columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..batch import Batch
from ..columns import Columns
from ..errors import RecordError
from ..needed import Needed
from ..updates import Updates
from .base import Context, Emit, Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Cast(Operator):
    """Converts the columns in `types` to their types there; all other columns, and the order, stay."""

    types: Mapping[str, pa.DataType]

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return inputs[0]

    def open(self, context: Context) -> CastInstance:
        return CastInstance(self, context)

    def needs(self, wanted: Needed | None) -> Needed | None:
        return None if wanted is None else wanted.with_names(self.types)

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return inputs[0].having(self.types)

    def describe(self) -> str:
        return ", ".join(f"{name} to {kind}" for name, kind in self.types.items())


class CastInstance(OperatorInstance):
    """Has no state."""

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


def cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column as `kind`. Raises ArrowInvalid for a value that doesn't fit, ArrowNotImplementedError for types of which none fits.

    Arrow refuses all integers for a decimal with room for fewer digits than their type has, so they become a wide decimal first. It gives
    infinity for a number that is too large for a float of fewer bits.
    """
    if pa.types.is_decimal(kind) and pa.types.is_integer(column.type):
        column = column.cast(pa.decimal128(20, 0)).cast(pa.decimal256(76, kind.scale) if kind.scale > 18 else pa.decimal128(38, kind.scale))
    converted = column.cast(kind)
    if pa.types.is_floating(kind) and pa.types.is_floating(column.type) and kind.bit_width < column.type.bit_width:
        finite = pc.or_kleene(pc.is_finite(converted), pc.invert(pc.is_finite(column)))
        if not pc.all(finite, min_count=0).as_py():
            value = column.filter(pc.invert(finite))[0]
            raise pa.ArrowInvalid(f"{value} is too large for {kind}")
    return converted
