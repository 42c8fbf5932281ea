"""Keys as bytes: every key type is restored exactly, and equal keys have equal bytes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_times_in_other_units_are_the_same_keys():
    microseconds, seconds = pa.array([5_000_000], pa.timestamp("us")), pa.array([5], pa.timestamp("s"))
    codec = codec_of(microseconds)
    assert codec.pack([microseconds]) == codec.pack([seconds])


@given(st.lists(st.tuples(st.one_of(st.none(), st.text()), st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)))))
def test_different_keys_have_different_bytes(keys):
    columns = [pa.array([text for text, _ in keys], pa.string()), pa.array([number for _, number in keys], pa.int64())]
    packed = codec_of(*columns).pack(columns)
    assert len(set(packed)) == len(set(keys))
