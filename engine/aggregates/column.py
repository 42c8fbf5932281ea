"""The column that an aggregate reads: its type, and its non-null values in each batch.

As in SQL, aggregates ignore nulls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..batch import Batch, Times
from ..errors import FlowError, RecordError
from ..types.exact import Inexact, exactly
from ..types.widening import value_type
from .base import Codes


@dataclass(frozen=True, slots=True)
class ValidRows:
    """The rows that have a value: the values (no nulls), the group of each, and the event times if there are any."""

    values: pa.Array
    codes: Codes
    times: Times | None


@dataclass(frozen=True, slots=True)
class InputColumn:
    """A column `name` of `type` (the value type of a dictionary), read by `function` in `operator` as `read_type`."""

    function: str
    name: str
    operator: str
    type: pa.DataType
    read_type: pa.DataType

    @staticmethod
    def of(schema: pa.Schema, function: str, name: str, operator: str) -> InputColumn:
        """Bind to a column of `schema`. Raises RecordError if the column is missing."""
        index = schema.get_field_index(name)
        if index < 0:
            raise _missing(schema, function, name, operator)
        kind = value_type(schema.field(index).type)
        return InputColumn(function, name, operator, kind, _read_type(kind))

    @property
    def untyped(self) -> bool:
        """True if the column has held only nulls so far."""
        return bool(pa.types.is_null(self.type))

    def refusal(self, accepted: str) -> RecordError:
        """Return the error for a type that the function can't use; `accepted` lists the types that it can."""
        problem = f"the column is of type {self.type}; {self.function} works on {accepted}: convert it, or choose another column"
        return RecordError(self.operator, f"{self.function}(`{self.name}`): {problem}")

    def values(self, batch: Batch) -> pa.Array:
        """Return the column of `batch` as `read_type`, with its nulls.

        Raises RecordError if it is missing or doesn't fit its first type.
        """
        column = column_of(batch, self.function, self.name, self.operator)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        return column if column.type == self.read_type else self._converted(column)

    def rows(self, batch: Batch, codes: Codes) -> ValidRows:
        """Return the rows of `batch` that have a value.

        Raises RecordError if the column is missing or its values don't fit its first type.
        """
        column = self.values(batch)
        if column.null_count == 0:
            return ValidRows(column, codes, batch.times)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return ValidRows(column.drop_null(), codes[valid], None if batch.times is None else batch.times[valid])

    def _converted(self, column: pa.Array) -> pa.Array:
        """Return the column as `read_type`. Raises RecordError for a value that would change."""
        try:
            return exactly(column, self.read_type)
        except Inexact as error:
            reason = str(error)
        raise RecordError(
            self.operator,
            f"{self.function}(`{self.name}`): the column was of type {self.type} at first and is {column.type} now: {reason}; "
            "give it one type in the source",
        )


def _read_type(kind: pa.DataType) -> pa.DataType:
    """Return a type with the same values that Arrow can filter, take and sort, which it can't for views and small decimals."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def column_of(batch: Batch, function: str, name: str, operator: str) -> pa.Array:
    """Return the column `name` of `batch`. Raises RecordError if it is missing."""
    schema = batch.rows.schema
    index = schema.get_field_index(name)
    if index < 0:
        raise _missing(schema, function, name, operator)
    return batch.rows.column(index)


def column_name(function: str, name: object) -> str:
    """Return `name`. Raises FlowError if it is not a string."""
    if not isinstance(name, str):
        raise FlowError(f'{function} takes the name of a column, as in {function}("delay"); got {name!r}')
    return name


def _missing(schema: pa.Schema, function: str, name: str, operator: str) -> RecordError:
    many = "more than one" if schema.names.count(name) > 1 else "no"
    return RecordError(operator, f"{function}(`{name}`): there is {many} column `{name}`; there are: {', '.join(schema.names)}")


def checked_fraction(function: str, parameter: str, value: object, lowest: float, highest: float) -> float:
    """Return `value` as a float. Raises FlowError unless it is a number from `lowest` to `highest`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not lowest <= value <= highest:
        raise FlowError(f"{function}: `{parameter}` must be a number from {lowest:g} to {highest:g}, got {value!r}")
    return float(value)
