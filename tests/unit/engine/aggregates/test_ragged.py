"""Lists of any length: taken, joined, replaced, in slots, and as bytes."""

from __future__ import annotations

import string
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.aggregates.ragged import Ragged, joined, replaced
from evenflow.engine.keyed_state.memory.ragged_slots import RaggedSlots
from evenflow.engine.keyed_state.stored.ragged_bytes import from_stored, stored, stored_types

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6)


def ragged(lists: list[list[Any]], kind: pa.DataType | None = None) -> Ragged:
    return Ragged.from_arrow(pa.array(lists, pa.large_list(kind or pa.int64())))


def plain(lists: Ragged) -> list[Any]:
    return lists.to_arrow().to_pylist()


@given(LISTS, LISTS, st.data())
def test_rows_are_taken_joined_and_replaced_as_those_of_lists(left: list[Any], right: list[Any], data: st.DataObject) -> None:
    both = joined([ragged(left), ragged(right)])
    assert plain(both) == left + right
    rows = data.draw(st.lists(st.integers(0, len(both) - 1), max_size=8)) if len(both) else []
    assert plain(both[np.array(rows, np.int64)]) == [(left + right)[row] for row in rows]
    mask = np.array([len(values) > 1 for values in left + right], np.bool_)
    assert plain(both[mask]) == [values for values in left + right if len(values) > 1]
    places = data.draw(st.permutations(range(len(both))))[: len(left)]
    changed = left + right
    for place, values in zip(places, left, strict=True):
        changed[place] = values
    assert plain(replaced(both, np.array(places, np.int64), ragged(left))) == changed
    assert plain(both) == left + right


def test_null_lists_are_empty_whatever_their_values_are() -> None:
    lists = pa.LargeListArray.from_arrays(pa.array([0, 2, 3]), pa.array([1, 2, 3]), mask=pa.array([True, False]))
    assert plain(Ragged.from_arrow(lists)) == [[], [3]]
    assert plain(Ragged.from_arrow(lists.slice(1))) == [[3]]


@given(st.lists(st.tuples(st.lists(st.integers(0, 19), max_size=6, unique=True), st.integers(0, 700), st.booleans()), max_size=40))
def test_slots_hold_what_was_put_into_them_last(writes: list[tuple[list[int], int, bool]]) -> None:
    slots, expected = RaggedSlots(pa.int64(), 0), list[list[int]]()
    for number, (places, length, clear) in enumerate(writes):
        more = max([0, *(place + 1 - len(slots) for place in places)])
        slots.grow(more)
        expected += [[] for _ in range(more)]
        lists = [[number] * (0 if clear else (length + 97 * i) % 700) for i in range(len(places))]
        where = np.array(places, np.int64)
        if clear:
            slots.clear(where)
        else:
            slots[where] = ragged(lists)
        for place, values in zip(places, lists, strict=True):
            expected[place] = values
    assert plain(slots[np.arange(len(expected))]) == expected
    everything = sum(map(len, expected))
    assert slots.nbytes <= 8 * (4 * everything + 4 * 1_024) + 24 * len(expected), "garbage is thrown away"


VALUES = {
    "int16": (pa.int16(), [1, -2, None]),
    "bool": (pa.bool_(), [True, None, False]),
    "float": (pa.float64(), [1.5, -0.0, None]),
    "string": (pa.string(), ["", "abc", None]),
    "large binary": (pa.large_binary(), [b"\0", None, b"abc"]),
    "fixed binary": (pa.binary(2), [b"ab", None, b"cd"]),
    "decimal": (pa.decimal128(20, 2), [Decimal("1.25"), None, Decimal("-3.00")]),
    "date": (pa.date32(), [date(2020, 1, 2), None, date(1960, 1, 1)]),
    "null": (pa.null(), [None, None, None]),
    "struct": (
        pa.struct([("a", pa.int8()), ("b", pa.string()), ("c", pa.null())]),
        [{"a": 1, "b": "x", "c": None}, {"a": None, "b": None, "c": None}, {"a": 3, "b": "yz", "c": None}],
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_lists_come_back_from_bytes_row_by_row(name: str) -> None:
    kind, (a, b, c) = VALUES[name]
    lists = pa.array([[a], [], [a, b], [c, b, a, a], [c]], pa.large_list(kind))
    for some in (lists, lists.slice(1, 3), lists.slice(1, 1), lists.slice(0, 0)):
        columns = stored(some)
        assert [column.type for column in columns] == stored_types(lists.type)
        backwards = np.arange(len(some))[::-1]
        anew = [pa.array(column.take(pa.array(backwards)).to_pylist(), column.type) for column in columns]
        assert from_stored(anew, lists.type).to_pylist() == some.to_pylist()[::-1]


def test_columns_other_than_lists_stay_as_they_are() -> None:
    column = pa.array([*string.ascii_lowercase])
    assert stored(column) == [column]
    assert from_stored([column], column.type) is column
