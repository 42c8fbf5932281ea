"""One schema for a whole stream: the same columns and types; a column that is all null so far may still get a type.

>>> before, now = pa.schema({"a": pa.null(), "b": pa.int64()}), pa.schema({"b": pa.int64(), "a": pa.string()})
>>> settled(before, now, "write").types
[DataType(string), DataType(int64)]
>>> fitted(pa.record_batch({"a": pa.nulls(1), "b": [1]}), settled(before, now, "write")).to_pylist()
[{'a': None, 'b': 1}]
"""

from __future__ import annotations

import pyarrow as pa

from ..engine.errors import ConnectorError


def settled(before: pa.Schema, now: pa.Schema, operator: str) -> pa.Schema:
    """The columns of `before` in its order; those that were all null get their type from `now`.

    Raises ConnectorError naming a column that changed its type, is new, or is missing.
    """
    for name in dict.fromkeys([*before.names, *now.names]):
        if name not in now.names or name not in before.names:
            change = "is missing" if name in before.names else "is new"
            raise ConnectorError(f"operator `{operator}`: column `{name}` {change} in a later batch; all batches need the same columns")
        old, new = before.field(name).type, now.field(name).type
        if old != new and not pa.types.is_null(old) and not pa.types.is_null(new):
            problem = f"changed from {old} to {new}; give it one type before it is written"
            raise ConnectorError(f"operator `{operator}`: column `{name}` {problem}")
    return pa.schema([now.field(name) if pa.types.is_null(before.field(name).type) else before.field(name) for name in before.names])


def fitted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of `schema` in its order and with its types; a column of another type must be all null."""
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    columns = [rows.column(name) for name in schema.names]
    typed = [
        column if column.type == field.type else pa.nulls(rows.num_rows, field.type) for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(typed, schema=schema)
