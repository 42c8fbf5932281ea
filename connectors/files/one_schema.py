"""One schema for a whole stream: columns and types stay, except that an all-null column may get a type and a narrower type is
converted.

>>> before, now = pa.schema({"a": pa.null(), "b": pa.int64()}), pa.schema({"b": pa.int64(), "a": pa.string()})
>>> settled(before, now, "write").types
[DataType(string), DataType(int64)]
>>> fitted(pa.record_batch({"a": pa.nulls(1), "b": [1]}), settled(before, now, "write"), "write").to_pylist()
[{'a': None, 'b': 1}]
"""

from __future__ import annotations

import pyarrow as pa

from ...engine.errors import ConnectorError
from ...engine.types.exact import Inexact, exactly
from ...engine.types.widening import value_type, wider


def settled(before: pa.Schema, now: pa.Schema, operator: str, *, widen: bool = False) -> pa.Schema:
    """Return the columns of `before` in its order, with types that hold those of `now` as well.

    Raises ConnectorError naming a column that is new or missing, or whose type would have to change, except from all null.
    `widen`: allow a change to a wider type.
    """
    fields = []
    for name in dict.fromkeys([*before.names, *now.names]):
        if name not in now.names or name not in before.names:
            change = "is missing" if name in before.names else "is new"
            raise ConnectorError(f"operator `{operator}`: column `{name}` {change} in a later batch; all batches need the same columns")
        old, new = before.field(name).type, now.field(name).type
        kind = old if old == new else wider(old, new)
        if kind is None or not (widen or pa.types.is_null(old) or kind == value_type(old)):
            problem = f"changed from {old} to {new}; give it one type before it is written"
            advice = "with schema= where its values are made, or with cast()"
            raise ConnectorError(f"operator `{operator}`: column `{name}` {problem}, {advice}")
        fields.append(before.field(name) if kind == value_type(old) else now.field(name).with_type(kind))
    return pa.schema(fields)


def fitted(rows: pa.RecordBatch, schema: pa.Schema, operator: str) -> pa.RecordBatch:
    """Return the columns of `schema` in its order and with its types. Raises ConnectorError, naming the column, for a value that
    would change.
    """
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    typed = []
    for field in schema:
        column = rows.column(field.name)
        try:
            typed.append(column if column.type == field.type else exactly(column, field.type))
        except Inexact as error:
            problem = f"operator `{operator}`: column `{field.name}` is {field.type}, and {error}: give it one type with schema= or cast()"
            raise ConnectorError(problem) from error
    return pa.RecordBatch.from_arrays(typed, schema=schema)
