from __future__ import annotations

from datetime import date, datetime
from math import inf, nan

import pyarrow as pa
import pytest

from evenflow.engine.types.casting import cast, unchanged

A = pa.struct({"a": pa.float32()})
TOO_LARGE = {
    "plain": (pa.array([1.0, 1e300]), pa.float32()),
    "struct": (pa.array([{"a": 1e300}]), A),
    "list": (pa.array([[1.0], None, [1e300]]), pa.list_(pa.float32())),
    "large list": (pa.array([[1e300]]), pa.large_list(pa.float32())),
    "map": (pa.array([[("k", 1e300)]], pa.map_(pa.string(), pa.float64())), pa.map_(pa.string(), pa.float32())),
    "text": (pa.array(["Infinity", "-inf", "1e+300"]), pa.float32()),
    "list of structs": (pa.array([[{"a": 1e300}]]), pa.list_(A)),
}


@pytest.mark.parametrize(("column", "kind"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_number_that_is_too_large_is_refused_wherever_it_is(column, kind):
    with pytest.raises(pa.ArrowInvalid, match=r"1e\+300'? is too large for float"):
        cast(column, kind)


@pytest.mark.parametrize("place", [0, 1])
def test_infinite_values_and_nulls_may_become_narrower(place):
    column = pa.array([[{"a": inf}, None], None, [{"a": nan}, {"a": None}]], pa.list_(pa.struct({"a": pa.float64()}))).slice(place)
    assert str(cast(column, pa.list_(A)).to_pylist()) == str(column.to_pylist())


@pytest.mark.parametrize("inside", [False, True], ids=["", "in a list"])
def test_a_field_is_not_dropped(inside):
    rows, kind = pa.array([{"a": 1, "b": 2}]), pa.struct({"a": pa.int64()})
    column = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), rows) if inside else rows
    with pytest.raises(pa.ArrowInvalid, match="the field `b` would be lost"):
        cast(column, pa.list_(kind) if inside else kind)


def test_a_new_field_is_null():
    assert cast(pa.array([{"a": 1}]), pa.struct({"a": pa.int32(), "b": pa.string()})).to_pylist() == [{"a": 1, "b": None}]


CHANGED = {
    "digits": (pa.array([0.1]), pa.float32()),
    "a time of a date": (pa.array([datetime(2026, 1, 1, 5)]), pa.date32()),
    "a decimal's digits": (pa.array([1.239]), pa.decimal128(10, 2)),
    "a number as a truth": (pa.array([2]), pa.bool_()),
}


@pytest.mark.parametrize(("column", "kind"), CHANGED.values(), ids=CHANGED)
def test_a_value_that_would_change_is_refused(column, kind):
    with pytest.raises(pa.ArrowInvalid, match="would change in"):
        unchanged(column, kind)


SAME = {
    "wider": (pa.array([1, None]), pa.float64()),
    "nan": (pa.array([nan, 0.5, -0.0]), pa.float32()),
    "midnight": (pa.array([datetime(2026, 1, 1)]), pa.date32()),
    "days": (pa.array([date(2026, 1, 1)]), pa.timestamp("us")),
    "units": (pa.array([1_000], pa.timestamp("ns")), pa.timestamp("us")),
    "fields": (pa.array([{"a": 1}, None]), pa.struct({"a": pa.int64(), "b": pa.string()})),
    "texts": (pa.array(["a"]).dictionary_encode(), pa.string()),
}


@pytest.mark.parametrize(("column", "kind"), SAME.values(), ids=SAME)
def test_values_that_stay_the_same_take_the_type(column, kind):
    assert unchanged(column, kind).type == kind
