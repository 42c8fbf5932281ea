"""Lists become rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from evenflow.engine.operators.rows.explode import Explode

PAIRS = pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())]))
STRUCTS = pa.array([[{"x": 1, "y": "a"}, {"x": 2, "y": None}], None, [], [None]], PAIRS)


def test_structs_become_columns_where_the_list_was(drive):
    step = drive(Explode("l", "rank"))
    assert step.process({"k": [1, 2, 3, 4], "l": STRUCTS, "z": [5, 6, 7, 8]}) == [
        {"k": 1, "rank": 1, "x": 1, "y": "a", "z": 5},
        {"k": 1, "rank": 2, "x": 2, "y": None, "z": 5},
        {"k": 4, "rank": 1, "x": None, "y": None, "z": 8},
    ]
    assert step.schemas[0].names == ["k", "rank", "x", "y", "z"]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2)])
def test_other_elements_keep_the_columns_name_and_rows_their_time(drive, kind):
    step = drive(Explode("l"))
    assert step.process({"l": pa.array([[1, None], [3, 4]], kind)}, [7, 8]) == [{"l": 1}, {"l": None}, {"l": 3}, {"l": 4}]
    assert step.times["out"] == [7, 7, 8, 8]


@pytest.mark.parametrize("column", [pa.array([None, []], pa.list_(pa.int8())), pa.nulls(2)], ids=["empty lists", "nulls of no type"])
def test_batch_without_elements_leaves_nothing(drive, column):
    assert drive(Explode("l")).process({"l": column}) == []


def test_slice_of_lists_gives_the_elements_of_the_slice(drive):
    rows = drive(Explode("l", "rank")).process({"k": [2, 3, 4], "l": STRUCTS.slice(1, 3)})
    assert rows == [{"k": 4, "rank": 1, "x": None, "y": None}]
    assert [row["rank"] for row in drive(Explode("l", "rank")).process({"l": STRUCTS.slice(0, 1)})] == [1, 2]
