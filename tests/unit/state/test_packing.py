"""Packed values are restored equal and with the same types; all other values are rejected."""

from __future__ import annotations

import enum
import math
import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgpack
import numpy as np
import pandas as pd
import pytest
from dateutil.tz import tzlocal
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import from_dtype

from evenflow.state.packed_types import NUMPY
from evenflow.state.packing import first_foreign, pack_value, pack_values, problem_of, unpack_value

zones = st.none() | st.timezones() | st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
named_zone = timezone(timedelta(hours=1, seconds=7), "somewhere")
scalars = st.sampled_from(sorted(NUMPY, key=str)).flatmap(
    lambda kind: from_dtype(np.dtype(f"{np.dtype(kind).str}[us]" if kind in (np.datetime64, np.timedelta64) else kind), allow_nan=False)
)
keys = st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(), st.binary(), st.booleans(), st.tuples(st.integers(-9, 9), st.text()))
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**200), 2**200),
    st.floats(allow_nan=False),
    st.text(),
    st.text(st.characters(categories=["Cs", "L"])),
    st.binary(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.dates(),
    st.times(timezones=zones),
    st.datetimes(timezones=zones, allow_imaginary=True),
    st.timedeltas(),
    st.sets(st.integers() | st.text()),
    st.frozensets(st.decimals(allow_nan=False) | st.dates()),
    scalars,
)
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(keys, inner), max_leaves=20)


class Number(int):
    pass


class Colour(enum.IntEnum):
    RED = 1


class Point(NamedTuple):
    x: int


@dataclass
class Visit:
    pages: int


@given(values)
def test_values_come_back_as_they_were(value):
    found = unpack_value(pack_value(value))
    assert found == value
    assert first_foreign([value]) is None
    assert pack_value(found) == pack_value(value), "tuples are tuples, True is no 1, -0.0 is no 0.0"
    assert deep_types(found) == deep_types(value)


def deep_types(value):
    if isinstance(value, dict):
        return [dict, *[(deep_types(key), deep_types(part)) for key, part in value.items()]]
    if isinstance(value, (list, tuple)):
        return [type(value), *map(deep_types, value)]
    return type(value), type(getattr(value, "tzinfo", None))


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 1, 1, tzinfo=named_zone),
        time(1, 2, 3, 4, named_zone, fold=1),
        Decimal("-0.00"),
        Decimal("sNaN7"),
        Decimal("-Infinity"),
        np.datetime64("2026-01-01"),
        np.timedelta64(3, "s"),
        frozenset((frozenset((1,)), frozenset())),
        {(1, date(2026, 1, 1)): {"x": {None}}},
    ],
    ids=repr,
)
def test_odd_values_come_back_to_the_last_bit(value):
    assert repr(unpack_value(pack_value(value))) == repr(value)


def test_equal_sets_have_equal_bytes():
    assert pack_value({"a", "b", "c", 8, 16}) == pack_value({16, "c", 8, "b", "a"})


def test_not_a_number_comes_back():
    assert math.isnan(unpack_value(pack_value(math.nan)))


FOREIGN = {
    "object": (object(), "a object: store a value, or a dict of values"),
    "function": (len, "a builtin_function_or_method"),
    "complex": (1 + 2j, "a complex"),
    "number of its own": (Number(1), r"a Number: store int\(...\), because it would be restored as a int"),
    "enumeration": (Colour.RED, "a Colour: store its .value"),
    "named tuple": (Point(1), r"a Point: store tuple\(...\), or a dict by _asdict"),
    "dataclass": (Visit(1), r"a Visit: store dataclasses.asdict\(...\)"),
    "defaultdict": (defaultdict(int), r"a defaultdict: store dict\(...\)"),
    "counter": (Counter("a"), r"a Counter: store dict\(...\)"),
    "deque": (deque(), r"a deque: store list\(...\)"),
    "bytearray": (bytearray(b"x"), r"a bytearray: store bytes\(...\)"),
    "memoryview": (memoryview(b"x"), r"a memoryview: store bytes\(...\)"),
    "array": (np.zeros(2), r"a ndarray: store .tolist"),
    "text of numpy": (np.str_("x"), r"a str_: store .item"),
    "long double": (np.longdouble(1), r"a longdouble: store .item"),
    "timestamp of pandas": (pd.Timestamp(0), r"a Timestamp: store .to_pydatetime"),
    "zone of its own": (datetime(2026, 1, 1, tzinfo=tzlocal()), "a time zone of dateutil.tz.tz.tzlocal: use datetime.timezone or zoneinfo"),
}


@pytest.mark.parametrize(("value", "problem"), FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("inside", [lambda value: value, lambda value: [0, {"deep": (None, value)}]], ids=["alone", "inside"])
def test_other_values_are_found_and_named(inside, value, problem):
    assert first_foreign([1, inside(value), {2}]) == 1
    assert re.search(problem, problem_of(inside(value), "state"))


def test_containers_that_hold_themselves_are_refused():
    loop = []
    loop.append(loop)
    assert first_foreign([loop]) == 0
    assert problem_of(loop, "state") == "`state` has more than 100 containers inside one another"


def test_where_a_foreign_value_is_is_said():
    assert problem_of({"seen": [1, {2: Visit(1)}]}, "state").startswith("`state['seen'][1][2]` is a Visit")
    assert problem_of({Point(1): 1}, "state").startswith("`a key of state` is a Point")


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x92\x01", msgpack.packb(msgpack.ExtType(9, b"x")), pack_value((1, 2))[:-1], b"\x01\x02"])
def test_bytes_that_were_not_packed_are_refused(data):
    with pytest.raises((ValueError, TypeError, msgpack.UnpackException)):
        unpack_value(data)


def test_many_values_are_packed_as_each_is():
    values = [None, 1, "a", (1, (2, [3])), {"n": b"x"}]
    assert list(pack_values(values)) == [pack_value(value) for value in values]


def test_many_values_are_packed_up_to_the_one_that_can_not_be():
    packed = []
    with pytest.raises(TypeError):
        packed.extend(pack_values([1, (2,), object(), 4]))
    assert packed == [pack_value(1), pack_value((2,))]
