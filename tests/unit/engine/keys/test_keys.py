from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import RecordError
from evenflow.engine.keys.encoding import encode_keys

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def bounds(kind: pa.DataType) -> tuple[int, int]:
    info = np.iinfo(kind.to_pandas_dtype())
    return int(info.min), int(info.max)


@st.composite
def integer_columns(draw):
    """Columns near either end of their type and far apart, with and without nulls."""
    kind = draw(st.sampled_from(INTEGERS))
    low, high = bounds(kind)
    values = st.one_of(st.integers(low, high), st.integers(low, min(high, low + 9)), st.integers(max(low, high - 9), high))
    return pa.array(draw(st.lists(st.one_of(values, st.none()) if draw(st.booleans()) else values, max_size=40)), kind)


@given(integer_columns())
def test_codes_lead_to_the_row_s_key_and_every_key_is_there_once(column):
    keys = encode_keys(pa.record_batch([column], names=["key"]), ("key",), "count")
    (distinct,) = keys.columns
    assert distinct.type == column.type
    assert distinct.take(pa.array(keys.codes)).to_pylist() == column.to_pylist()
    assert len(distinct) == keys.count == len(set(column.to_pylist()))


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("count", [1, -1, 86_400_001])
def test_a_date64_that_is_no_whole_day_is_refused_by_name(count, coded):
    days = pa.array([86_400_000, None, count], pa.int64()).view(pa.date64())
    rows = pa.record_batch({"day": days.dictionary_encode() if coded else days, "n": [1, 2, 3]})
    with pytest.raises(RecordError, match=rf"operator `count`: the key column `day` is date64, and {count} ms since 1970 is no whole day"):
        encode_keys(rows, ("day",), "count")
    assert encode_keys(rows.slice(0, 2), ("day",), "count").values() == [date(1970, 1, 2), None]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_keys_at_both_ends_of_a_type_stay_apart(kind):
    column = pa.array([*bounds(kind), bounds(kind)[0]], kind)
    keys = encode_keys(pa.record_batch([column], names=["key"]), ("key",), "count")
    assert sorted(keys.values()) == sorted(bounds(kind))
    assert keys.codes[0] == keys.codes[2] != keys.codes[1]
