"""The common schema of batches that are concatenated.

>>> common_schema(pa.schema({"a": pa.null()}), pa.schema({"a": pa.int64()}))
a: int64
"""

from __future__ import annotations

import pyarrow as pa


def common_schema(first: pa.Schema, second: pa.Schema) -> pa.Schema | None:
    """Return the common schema of two schemas, None if their columns or types are not compatible."""
    if second.equals(first):
        return first
    if first.names != second.names:
        return None
    fields = [b if pa.types.is_null(a.type) else a for a, b in zip(first, second, strict=True)]
    fits = all(b.type == common.type or pa.types.is_null(b.type) for common, b in zip(fields, second, strict=True))
    return pa.schema(fields) if fits else None
