"""Lists of distinct values in slots against Python's sets."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.aggregates.ragged import Ragged
from evenflow.engine.keyed_state.memory import distinct_slots
from evenflow.engine.keyed_state.memory.distinct_slots import DistinctSlots, ValueNumbers


def ragged(lists, kind=None):
    kind = kind or pa.int64()
    return Ragged.of(pa.array([value for values in lists for value in values], kind), np.array([len(values) for values in lists], np.int64))


def sets_of(slots):
    lists = slots[np.arange(len(slots))].to_arrow().to_pylist()
    assert all(len(values) == len(set(values)) for values in lists), "a value is in its list once"
    return [set(values) for values in lists]


PLACES = st.lists(st.integers(0, 12), min_size=1, max_size=5, unique=True)
STEPS = st.lists(st.tuples(st.sampled_from(["add", "add", "add", "set", "clear"]), PLACES, st.integers(0, 2**32)), max_size=30)


@given(STEPS)
def test_slots_hold_what_was_added_since_they_were_cleared(steps):
    slots, expected = DistinctSlots(pa.int64(), 0), []
    for what, places, seed in steps:
        random = np.random.default_rng(seed)
        more = max(0, *(place + 1 - len(slots) for place in places))
        slots.grow(more)
        expected += [set() for _ in range(more)]
        where = np.array(places)
        lists = [random.choice(400, random.integers(0, 300), replace=False).tolist() for _ in places]
        if what == "add":
            lengths = slots.add(where, ragged(lists))
            for place, values in zip(places, lists, strict=True):
                expected[place] |= set(values)
            assert lengths.counts.tolist() == [len(expected[place]) for place in places]
        else:
            slots.clear(where)
            for place in places:
                expected[place] = set()
            if what == "set":
                slots[where] = ragged(lists)
                for place, values in zip(places, lists, strict=True):
                    expected[place] = set(values)
    assert sets_of(slots) == expected
    assert slots.nbytes <= 8 * (2 * sum(map(len, expected)) + 1) + 16 * len(slots) + 40_000, "garbage is thrown away"


VALUES = {
    "int8": (pa.int8(), [1, -2, 127]),
    "uint32": (pa.uint32(), [0, 1, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**64 - 1, 2**63]),
    "float": (pa.float64(), [1.5, 0.0, float("inf")]),
    "float32": (pa.float32(), [1.5, -2.0]),
    "bool": (pa.bool_(), [True, False]),
    "string": (pa.string(), ["", "abc"]),
    "binary": (pa.binary(2), [b"ab", b"\0\0"]),
    "decimal": (pa.decimal128(20, 2), [Decimal("1.25"), Decimal("-3.00")]),
    "date": (pa.date32(), [date(2020, 1, 2), date(1960, 1, 1)]),
    "timestamp": (pa.timestamp("ms", "UTC"), [datetime.fromisoformat("2020-01-01T00:00:00.001+00:00")]),
    "duration": (pa.duration("us"), [timedelta(microseconds=-1), timedelta(days=9)]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_every_type_come_back(name):
    kind, values = VALUES[name]
    slots = DistinctSlots(kind, 2)
    for _ in range(2):
        assert slots.add(np.array([1, 0]), ragged([values, values[:1]], kind)).counts.tolist() == [len(values), 1]
    lists = slots[np.array([0, 1])].to_arrow()
    assert lists.type.value_type == kind
    assert [set(found) for found in lists.to_pylist()] == [set(values[:1]), set(values)]


def test_values_keep_their_numbers():
    numbers = ValueNumbers(pa.int64())
    assert numbers.of(pa.array([7, 9, 7])).tolist() == [0, 1, 0]
    assert numbers.of(pa.array([9, 8])).tolist() == [1, 2]
    assert numbers.values(np.array([2, 0])).to_pylist() == [8, 7]


def test_owners_are_renumbered_when_their_numbers_run_out(monkeypatch):
    monkeypatch.setattr(distinct_slots, "_VALUE", 63)
    monkeypatch.setattr(distinct_slots, "_BITS", 6)
    slots = DistinctSlots(pa.int64(), 4)
    for number in range(100):
        slots.clear(np.array([number % 4]))
        slots.add(np.array([number % 4, (number + 1) % 4]), ragged([[number % 50], [number % 49]]))
    assert all(found <= set(range(50)) for found in sets_of(slots))
    assert sets_of(slots)[3] == {99 % 50}
