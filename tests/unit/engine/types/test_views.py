from __future__ import annotations

import pyarrow as pa
import pytest

from evenflow.engine.types.views import plain_type, without_views

TEXTS = pa.array(["a", None, "long " * 50], pa.string_view())
INDICES, OFFSETS = pa.array([0, 1, 2]), pa.array([0, 1, 3], pa.int32())
COLUMNS = {
    "texts": (TEXTS, pa.string()),
    "bytes": (pa.array([b"a", None], pa.binary_view()), pa.binary()),
    "dictionary": (pa.DictionaryArray.from_arrays(INDICES, TEXTS), pa.dictionary(pa.int64(), pa.string())),
    "struct": (pa.StructArray.from_arrays([TEXTS, INDICES], ["x", "n"]), pa.struct({"x": pa.string(), "n": pa.int64()})),
    "list": (pa.ListArray.from_arrays(OFFSETS, TEXTS), pa.list_(pa.string())),
    "large list": (pa.LargeListArray.from_arrays(OFFSETS.cast("int64"), TEXTS), pa.large_list(pa.string())),
    "list of a fixed size": (pa.FixedSizeListArray.from_arrays(TEXTS, 3), pa.list_(pa.string(), 3)),
    "list view": (pa.array([["a"], None], pa.list_view(pa.string_view())), pa.list_(pa.string())),
    "large list view": (pa.array([["a"], None], pa.large_list_view(pa.string_view())), pa.large_list(pa.string())),
    "map": (pa.MapArray.from_arrays(OFFSETS[:2], TEXTS[:1], TEXTS[:1]), pa.map_(pa.string(), pa.string())),
}


@pytest.mark.parametrize(("column", "kind"), COLUMNS.values(), ids=COLUMNS)
def test_views_become_plain_and_keep_their_values(column, kind):
    rows = without_views(pa.record_batch({"k": column}))
    assert rows.schema.types == [kind] == [plain_type(column.type)]
    assert rows["k"].to_pylist() == column.to_pylist()
    assert rows["k"].take(pa.array([0])).to_pylist() == column.to_pylist()[:1]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.list_view(pa.string()), pa.map_(pa.string(), pa.int64()), pa.int64()], ids=str
)
def test_rows_without_views_stay_as_they_are(kind):
    rows = pa.record_batch({"k": pa.nulls(2, kind)})
    assert without_views(rows) is rows
