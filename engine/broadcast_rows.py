"""The form in which the rows of a broadcast stream travel: the row as a struct column, and perhaps whether it deletes its key's row.

So a worker knows them from the rows of its keyed input.

>>> tagged = tagged_rows(pa.record_batch({"name": ["a"], "limit": [5]}), pa.array([False]))
>>> is_broadcast(tagged.schema), tagged.to_pylist()
(True, [{'__broadcast': {'name': 'a', 'limit': 5}, '__deletes': False}])
>>> plain_rows(tagged).to_pylist()
[{'name': 'a', 'limit': 5}]
"""

from __future__ import annotations

import pyarrow as pa

ROW, DELETES = "__broadcast", "__deletes"


def is_broadcast(schema: pa.Schema) -> bool:
    """Return True if a batch with this schema has rows of a broadcast stream, or a chunk of the copy of one."""
    return ROW in schema.names


def tagged_rows(rows: pa.RecordBatch, deletes: pa.Array | None) -> pa.RecordBatch:
    """Return rows in this form; `deletes`: true for those that delete their key's row, None if none does."""
    struct = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
    columns = {ROW: struct} if deletes is None else {ROW: struct, DELETES: deletes}
    return pa.record_batch(columns)


def plain_rows(tagged: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows themselves."""
    return pa.RecordBatch.from_arrays(tagged.column(ROW).flatten(), schema=plain_schema(tagged))


def plain_schema(tagged: pa.RecordBatch) -> pa.Schema:
    """Return the schema of the rows themselves."""
    return pa.schema(list(tagged.schema.field(ROW).type))
