"""The rows of a table by their keys: of every type, with nulls, repeated, and of other widths than the stream's."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.keys import table_index
from evenflow.engine.keys.table_index import TableIndex

DAY = dt.date(2020, 1, 1)
PAIRS = [
    (pa.array([1, -1, None], pa.int8()), pa.array([-1, 2**62, 1], pa.int64()), [(0, 2), (1, 0)]),
    (pa.array([2**64 - 1, 5], pa.uint64()), pa.array([-1, 5], pa.int64()), [(1, 1)]),
    (pa.array([-1, 5], pa.int64()), pa.array([2**64 - 1, 5, 5], pa.uint64()), [(1, 1), (1, 2)]),
    (pa.array(["a", "", None]), pa.array(["", "a"], pa.large_string()), [(0, 1), (1, 0)]),
    (pa.array([b"ab"]), pa.array([b"ab", b"a"], pa.large_binary()), [(0, 0)]),
    (pa.array([0.0, -0.0, 1.5], pa.float32()), pa.array([0.0, 1.5]), [(0, 0), (1, 0), (2, 1)]),
    (pa.array([True, None]), pa.array([False, True]), [(0, 1)]),
    (pa.array([DAY], pa.date32()), pa.array([DAY], pa.date64()), [(0, 0)]),
    (pa.array([1, 2**40], pa.timestamp("s")), pa.array([10**9], pa.timestamp("ns")), [(0, 0)]),
    (pa.array([1], pa.timestamp("s", "UTC")), pa.array([1000], pa.timestamp("ms", "Europe/Berlin")), [(0, 0)]),
    (pa.array([1], pa.duration("s")), pa.array([1000], pa.duration("ms")), [(0, 0)]),
    (pa.array([Decimal("1.50")]), pa.array([Decimal("1.5")], pa.decimal128(10, 4)), [(0, 0)]),
    (pa.nulls(2), pa.array(["a", None]), []),
]


@pytest.mark.parametrize(("stream", "table", "matches"), PAIRS, ids=lambda value: str(getattr(value, "type", "")))
def test_equal_values_of_one_kind_match_whatever_their_types(stream, table, matches):
    keys, rows = TableIndex([table], "lookup").find([stream])
    assert list(zip(keys.tolist(), rows.tolist(), strict=True)) == matches


VALUES = st.lists(st.tuples(st.integers(0, 3) | st.none(), st.sampled_from(["a", "b", None])), max_size=30)


def columns(rows):
    return [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], pa.string())]


@given(VALUES, VALUES, st.booleans())
def test_index_finds_what_a_loop_over_both_finds(stream, table, colliding):
    real = table_index.key_hashes
    if colliding:
        table_index.key_hashes = lambda columns, operator: real(columns, operator) % np.uint64(2)
    try:
        index = TableIndex(columns(table), "lookup")
        keys, rows = index.find(columns(stream))
        repeated = index.repeated()
    finally:
        table_index.key_hashes = real
    expected = [(i, j) for i, mine in enumerate(stream) for j, theirs in enumerate(table) if mine == theirs and None not in mine]
    assert list(zip(keys.tolist(), rows.tolist(), strict=True)) == expected
    complete = [row for row in table if None not in row]
    assert (repeated is None) == (len(set(complete)) == len(complete))
    assert repeated is None or table.index(table[repeated]) < repeated
