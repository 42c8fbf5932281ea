"""Encoding of rows that a user's function returned as columns, whose types widen with the values.

A column takes its type from the user's `schema`, which is a promise that is checked; or from the input's column of its name, if
all values fit that; or from its values. When a later value needs a wider type, the column has that type from then on: integers
become floats, a struct gets another field. A value that has no common type with those before it is an error that names the column
and both types.

>>> encoder = RowsEncoder("map")
>>> encoder.encode([{"a": 1, "b": "x"}]).schema.names
['a', 'b']
>>> encoder.encode([{"a": 2.5, "b": "y"}]).schema.field("a").type
DataType(double)
>>> RowsEncoder("map").encode([3, 4]).to_pydict()
{'item': [3, 4]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa

from ..batch import ITEM
from ..errors import FlowError, RecordError
from ..typed_rows.field_types import UnfitError
from ..typed_rows.row_classes import is_row_class
from ..typed_rows.row_type import RowType
from ..types.names import type_named
from ..types.python_values import REFUSALS
from ..types.value_column import ValueColumn

SchemaLike: TypeAlias = pa.Schema | Mapping[str, Any] | None
"""Column types: an Arrow schema, or a dict from column name to an Arrow type, its name (`{"n": "int64"}`) or a Python type."""


def arrow_schema(schema: SchemaLike, operator: str) -> pa.Schema | None:
    """Return the Arrow schema of a user's schema. Raises FlowError for an unknown type name."""
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    if not isinstance(schema, Mapping):
        shown = schema.__name__ if isinstance(schema, type) else f"{schema!r:.200}"
        raise FlowError(f"operator `{operator}`: schema is {shown}: give a dict of types by column, for example {{'n': 'int64'}}")
    return pa.schema([(name, column_type(name, kind, operator)) for name, kind in schema.items()])


def column_type(name: Any, kind: Any, operator: str) -> pa.DataType:
    """Return the type of a column. Raises FlowError for one that is unknown."""
    if not isinstance(name, str):
        raise FlowError(f"operator `{operator}`: schema has a column named {name!r}; column names are strings")
    try:
        return type_named(kind)
    except ValueError as error:
        raise FlowError(f"operator `{operator}`: column `{name}`: {error}") from error


class RowsEncoder:
    """An encoder of rows (dicts, or plain values for a stream with the one column `item`) as record batches.

    `schema`: the types that the user declared. `results`: the class of the rows, if they are objects. `function`: the name of
    the user's function, for errors. `advice`: the recommendation in errors about values of another type; by default the
    operator's `schema`.
    """

    def __init__(
        self,
        operator: str,
        schema: pa.Schema | None = None,
        *,
        results: RowType | None = None,
        function: str | None = None,
        advice: str | None = None,
    ) -> None:
        self.operator, self.declared, self._results = operator, schema, results
        self._names: list[str] | None = None if schema is None else schema.names
        self._columns = {} if schema is None else {field.name: ValueColumn(field.name, field.type) for field in schema}
        if results is not None:
            self._names = results.names
            self._columns = {name: ValueColumn(name, kind, exact=True) for name, kind in results.column_types().items()}
            advice = f"return values of the types that {results.name} says"
        self._function, self._advice = function, advice

    def encode(self, rows: list[Any], like: pa.Schema | None = None) -> pa.RecordBatch:
        """Return the rows (at least one) as columns; `like` is the schema of the input.

        Raises RecordError naming the column and the row.
        """
        names, columns, arrays = self._encoded(rows, like)
        for column, array in zip(columns, arrays, strict=True):
            column.learn(array)
        self._names, self._columns = names, dict(zip(names, columns, strict=True))
        if self.declared is not None:
            fields = [field.with_type(array.type) for field, array in zip(self.declared, arrays, strict=True)]
            return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=self.declared.metadata))
        return pa.record_batch(arrays, names=names)

    def first_misfit(self, rows: list[Any], like: pa.Schema | None = None) -> tuple[int, RecordError]:
        """Return the index of the first row that can't be encoded together with those before it, and the error."""
        fitting, tried = 0, 1
        while self._problem(rows[:tried], like) is None and tried < len(rows):
            fitting, tried = tried, min(2 * tried, len(rows))
        while tried - fitting > 1:
            middle = (fitting + tried) // 2
            fitting, tried = (middle, tried) if self._problem(rows[:middle], like) is None else (fitting, middle)
        problem = self._problem(rows[:tried], like)
        assert problem is not None
        return fitting, problem

    def _problem(self, rows: list[Any], like: pa.Schema | None) -> RecordError | None:
        try:
            self._encoded(rows, like)
        except RecordError as error:
            return error
        return None

    def _encoded(self, rows: list[Any], like: pa.Schema | None) -> tuple[list[str], list[ValueColumn], list[pa.Array]]:
        if self._results is not None:
            try:
                return self._arrays(self._results.names, self._results.columns(rows), rows, like)
            except UnfitError as error:
                raise RecordError(self.operator, f"{self._function}: {error}") from error
        plain = not isinstance(rows[0], dict)
        names = self._names if self._names is not None else [ITEM] if plain else self._names_of(rows[0])
        if plain:
            if names != [ITEM] or any(isinstance(row, dict) for row in rows):
                self._refuse_shape(rows, names)
            values = [rows]
        else:
            values = self._values(rows, names)
        if plain:
            self._refuse_objects(rows)
        encoded = self._arrays(names, values, rows, like)
        if plain and encoded[2][0].null_count and any(row is None for row in rows):
            self._refuse_none()
        return encoded

    def _arrays(
        self, names: list[str], values: Sequence[Sequence[Any]], rows: list[Any], like: pa.Schema | None
    ) -> tuple[list[str], list[ValueColumn], list[pa.Array]]:
        columns = [self._columns.get(name) or ValueColumn(name) for name in names]
        return names, columns, [self._array(column, given, rows, like) for column, given in zip(columns, values, strict=True)]

    def _refuse_objects(self, rows: list[Any]) -> None:
        """Raise RecordError for objects of a row class, if nothing says that the function returns them."""
        kind = next((kind for kind in set(map(type, rows)) if is_row_class(kind)), None)
        if kind is not None:
            advice = f"annotate it (`-> {kind.__name__}`), or say schema={kind.__name__}, where the operator allows it"
            raise RecordError(self.operator, f"{self._function or 'the function'} returned an object of {kind.__name__}: {advice}")

    def _names_of(self, row: dict[Any, Any]) -> list[str]:
        """Return the columns of the first row of the stream."""
        for name in row:
            if not isinstance(name, str):
                raise RecordError(self.operator, f"the column name {name!r} is no string: name columns by strings", record=row)
        if not row:
            raise RecordError(self.operator, "a row is {}, without columns: return at least one, and drop records with filter or flat_map")
        return list(row)

    def _values(self, rows: list[Any], names: list[str]) -> list[list[Any]]:
        try:
            if sum(map(len, rows)) == len(rows) * len(names):
                return [[row[name] for row in rows] for name in names]
        except (KeyError, TypeError):
            pass
        self._refuse_shape(rows, names)
        raise AssertionError("a row of another shape was not found")

    def _refuse_shape(self, rows: list[Any], names: list[str]) -> None:
        for row in rows:
            if row is None:
                self._refuse_none()
            keys = list(row) if isinstance(row, dict) else [ITEM]
            if sorted(map(str, keys)) != sorted(names):
                raise RecordError(
                    self.operator, f"every row must have the columns {names}, this one has {keys}: give missing values as None", record=row
                )
        raise RecordError(self.operator, "the function returned both dicts and plain values: return one kind", record=rows[0])

    def _refuse_none(self) -> NoReturn:
        raise RecordError(
            self.operator,
            f"the function returned None in place of a row: return a row ({{{ITEM!r}: None}} for a null); "
            "leave records out with filter, or with flat_map, which may return no rows",
        )

    def _array(self, column: ValueColumn, values: Sequence[Any], rows: list[Any], like: pa.Schema | None) -> pa.Array:
        place = -1 if like is None else like.get_field_index(column.name)
        try:
            return column.encoded(values, None if like is None or place < 0 else like.field(place).type)
        except REFUSALS as error:
            misfit = column.first_misfit(values)
            advice = self._advice or (
                f"return {'values' if self.declared is not None else 'one type'}"
                f"{' that fit the schema' if self.declared is not None else f', or set it with schema={{{column.name!r}: ...}}'}"
            )
            returned = "" if self._function is None else f" from {self._function}"
            raise RecordError(self.operator, f"{misfit.problem(returned)}; {advice}", record=rows[misfit.place]) from error
