"""Keys as bytes: every key type is restored exactly, and equal keys have equal bytes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import RecordError
from evenflow.engine.keys.codec import KeyCodec
from evenflow.engine.keys.encoding import KeyTypes

COLUMNS = [
    pa.array([1, None, -5], pa.int8()),
    pa.array([2**64 - 1, 0, None], pa.uint64()),
    pa.array([True, False, None]),
    pa.array([1.5, None, -0.25], pa.float32()),
    pa.array(["", "é\0", None]),
    pa.array(["a", None, "b"], pa.large_string()),
    pa.array([b"\xff", b"", None]),
    pa.array([b"ab", b"cd", None], pa.binary(2)),
    pa.array([dt.date(1900, 1, 1), None, dt.date(2100, 1, 1)]),
    pa.array([dt.date(1900, 1, 1), None], pa.date64()),
    pa.array([dt.time(1, 2), None], pa.time32("s")),
    pa.array([dt.time(1, 2, 3, 4), None]),
    pa.array([1, None], pa.timestamp("ns")),
    pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None], pa.timestamp("s", tz="Europe/Berlin")),
    pa.array([dt.timedelta(seconds=-5), None]),
    pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
    pa.array(["x", None, "x"]).dictionary_encode(),
    pa.nulls(3),
]


def codec_of(*columns):
    types = KeyTypes("count")
    types.learn(list(columns))
    return KeyCodec(types)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_key_of_any_type_comes_back(column):
    codec = codec_of(column)
    (back,) = codec.columns(codec.pack([column]))
    assert back.to_pylist() == column.to_pylist() if column.type != pa.timestamp("ns") else back.equals(column)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_key_of_two_columns_comes_back(column):
    other = pa.array(range(len(column)))
    codec = codec_of(column, other)
    packed = codec.pack([column, other])
    assert len(set(packed)) == len(column)
    assert codec.columns(packed)[1].equals(other)


def test_zeros_of_both_signs_are_one_key():
    zeros = pa.array([0.0, -0.0])
    assert len(set(codec_of(zeros).pack([zeros]))) == 1


def times(counts, kind):
    return pa.array(counts, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


UNITS = [
    [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")],
    [pa.timestamp("s", "Europe/Berlin"), pa.timestamp("ns", "UTC")],
    [pa.duration("s"), pa.duration("ns")],
    [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
]
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@pytest.mark.parametrize(("one", "other"), [pair for kinds in UNITS for pair in permutations(kinds, 2)], ids=str)
def test_times_in_other_units_are_the_same_keys_whichever_come_first(one, other):
    first, later = times([5 * PER_SECOND[one.unit], None], one), times([5 * PER_SECOND[other.unit], None], other)
    codec = codec_of(first)
    packed = codec.pack([first])
    codec.types.learn([later])
    assert codec.pack([later]) == packed == codec.pack([first])
    (back,) = codec.columns(packed)
    assert back.type.unit == max(one.unit, other.unit, key=list(PER_SECOND).index)
    assert back.equals(first.cast(back.type))


def test_dates_of_both_widths_are_the_same_keys():
    days, milliseconds = pa.array([5, None], pa.date32()), pa.array([5 * 86_400_000, None], pa.date64())
    assert codec_of(days).pack([days]) == codec_of(milliseconds).pack([milliseconds])
    assert codec_of(milliseconds).columns(codec_of(days).pack([days])) == [milliseconds]


def test_times_beyond_the_range_of_nanoseconds_come_back():
    column = pa.array([2**60, -(2**60), None], pa.timestamp("s"))
    codec = codec_of(column)
    assert codec.columns(codec.pack([column])) == [column]
    packed = codec.pack([column])
    codec.types.learn([pa.array([1], pa.timestamp("ns"))])
    with pytest.raises(RecordError, match=r"operator `count`: a key column is timestamp\[ns\], which can't hold all of its keys"):
        codec.columns(packed)


@given(st.lists(st.tuples(st.one_of(st.none(), st.text()), st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)))))
def test_different_keys_have_different_bytes(keys):
    columns = [pa.array([text for text, _ in keys], pa.string()), pa.array([number for _, number in keys], pa.int64())]
    packed = codec_of(*columns).pack(columns)
    assert len(set(packed)) == len(set(keys))
