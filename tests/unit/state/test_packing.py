"""What was packed comes back equal and of the same types, and nothing else can be packed."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.state.packing import pack_value, pack_values, unpack_value

keys = st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(), st.binary(), st.booleans(), st.tuples(st.integers(-9, 9), st.text()))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(keys, inner),
    max_leaves=20,
)


class Number(int):
    pass


@given(values)
def test_values_come_back_as_they_were(value):
    found = unpack_value(pack_value(value))
    assert found == value
    assert repr(found) == repr(value), "tuples are tuples, True is no 1, -0.0 is no 0.0"


def test_not_a_number_comes_back():
    assert math.isnan(unpack_value(pack_value(math.nan)))


@pytest.mark.parametrize(
    "value",
    [{1, 2}, object(), datetime(2026, 1, 1), Decimal(1), np.int64(1), Number(1), 1 + 2j, len, [{"deep": {1}}]],
    ids=lambda value: type(value).__name__,
)
def test_other_values_are_refused_by_type(value):
    with pytest.raises(TypeError, match="is not among them"):
        pack_value(value)


def test_integers_beyond_64_bits_are_refused():
    with pytest.raises(TypeError, match="an int of more than 64 bits is not among them"):
        pack_value([2**64])


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x92\x01", msgpack.packb(msgpack.ExtType(9, b"x")), pack_value((1, 2))[:-1], b"\x01\x02"])
def test_bytes_that_nobody_packed_are_refused(data):
    with pytest.raises((ValueError, TypeError, msgpack.UnpackException)):
        unpack_value(data)


def test_many_values_are_packed_as_each_is():
    values = [None, 1, "a", (1, (2, [3])), {"n": b"x"}]
    assert list(pack_values(values)) == [pack_value(value) for value in values]


def test_many_values_are_packed_up_to_the_one_that_can_not_be():
    packed = []
    with pytest.raises(TypeError):
        packed.extend(pack_values([1, (2,), {3}, 4]))
    assert packed == [pack_value(1), pack_value((2,))]
