"""Conversion of views to plain texts and bytes, because Arrow can neither take nor filter the rows of a view.

>>> rows = without_views(pa.record_batch({"k": pa.array(["JFK"], pa.string_view()), "n": [1]}))
>>> rows.schema.types
[DataType(string), DataType(int64)]
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def without_views(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with views, also those inside of structs, lists and maps, as plain texts and bytes."""
    schema = _plain_schema(rows.schema)
    if schema is None:
        return rows
    columns = [_plain(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@lru_cache(maxsize=256)
def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that columns of the type `kind` have in a stream.

    >>> plain_type(pa.list_(pa.binary_view()))
    ListType(list<item: binary>)
    """
    types = pa.types
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind):
        return pa.binary()
    if types.is_dictionary(kind):
        value = plain_type(kind.value_type)
        return kind if value == kind.value_type else pa.dictionary(kind.index_type, value, kind.ordered)
    if types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), kind.item_field.with_type(plain_type(kind.item_type)), kind.keys_sorted)
    return _plain_list(kind)


def _plain_list(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if not any(check(kind) for check in (types.is_list, types.is_large_list, types.is_fixed_size_list, *_LIST_VIEWS)):
        return kind
    value = kind.value_field.with_type(plain_type(kind.value_type))
    if value.type == kind.value_type:
        return kind
    if types.is_fixed_size_list(kind):
        return pa.list_(value, kind.list_size)
    return pa.list_(value) if types.is_list(kind) or types.is_list_view(kind) else pa.large_list(value)


@lru_cache(maxsize=256)
def _plain_schema(schema: pa.Schema) -> pa.Schema | None:
    """Return the schema without views; None if it has none."""
    kinds = [plain_type(kind) for kind in schema.types]
    if kinds == schema.types:
        return None
    return pa.schema([field.with_type(kind) for field, kind in zip(schema, kinds, strict=True)], metadata=schema.metadata)


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if not any(check(column.type) for check in _LIST_VIEWS):
        return column.cast(kind)
    lengths = pc.list_value_length(column).fill_null(0).to_numpy()  # Arrow can't convert the values of a list view
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    lists = pa.ListArray if pa.types.is_list(kind) else pa.LargeListArray
    values = _plain(column.flatten(), kind.value_type)
    offset_type = pa.int32() if pa.types.is_list(kind) else pa.int64()
    return lists.from_arrays(pa.array(offsets, offset_type), values, type=kind, mask=column.is_null())


_LIST_VIEWS = (pa.types.is_list_view, pa.types.is_large_list_view)
