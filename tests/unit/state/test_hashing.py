from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.state.hashing import MAX_GROUPS, NULL_HASH, UnhashableKey, combine, group_of, hash64

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(5)]
STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]

# A change of any of these orphans the keyed state in every existing checkpoint.
GOLDEN = [
    (0, 0xE220A8397B1DCDAF),
    (1, 0x910A2DEC89025CC1),
    (-1, 0xE4D971771B652C20),
    (True, 0x910A2DEC89025CC1),
    (1.0, 0x910A2DEC89025CC1),
    (1.5, 0xD6DAB18E1392608A),
    (float("inf"), 0x249E5410C2F97D99),
    ("", 0x2D06800538D394C2),
    ("evenflow", 0x8A745668129B8DB0),
    ("žluťoučký kůň", 0xCB61FA5CD5F2D50B),
    (b"\x00\xff", 0xA99B043A346C8BF3),
    (Decimal("1.50"), 0x3D006AFFBF7F50EE),
    (Decimal("-0.07"), 0x25D407E310FB4EA6),
    (date(2026, 1, 1), 0x89DB5515B8DE1F50),
    (datetime(2026, 1, 1, 12, 0, 0, 1), 0x35945E63D8BA47EB),
    (time(1, 2, 3), 0x0D306487D760A72B),
    (timedelta(seconds=1), 0x52C0377768F5B26D),
    (None, 0x6E756C6C6E756C6C),
]


def hash_of(value: Any, kind: pa.DataType | None = None) -> int:
    return int(hash64(pa.array([value], kind))[0])


@pytest.mark.parametrize(("value", "expected"), GOLDEN, ids=repr)
def test_hashes_are_the_same_in_every_version(value: Any, expected: int) -> None:
    assert hash_of(value) == expected


@pytest.mark.slow
def test_hashes_are_the_same_in_every_process() -> None:
    program = "import pyarrow as pa; from evenflow.state.hashing import hash64; print(hash64(pa.array(['a', 'b'])).tolist())"
    outputs = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env={"PYTHONHASHSEED": seed}).stdout
        for seed in "12"
    }
    assert outputs == {f"{hash64(pa.array(['a', 'b'])).tolist()}\n".encode()}


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_equal_integers_of_any_width_have_equal_hashes(kind: pa.DataType) -> None:
    values = [0, 1, 127]
    assert hash64(pa.array(values, kind)).tolist() == hash64(pa.array(values)).tolist()


@pytest.mark.parametrize("kind", [*STRINGS, *BYTES], ids=str)
def test_equal_text_of_any_layout_has_equal_hashes(kind: pa.DataType) -> None:
    values = ["12345", None, "abcde", "12345"]
    typed = pa.array([v.encode() if v and kind in BYTES else v for v in values], kind)
    assert hash64(typed).tolist() == hash64(pa.array(values)).tolist()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_equal_times_in_any_unit_have_equal_hashes(unit: str) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5)
    assert hash_of(moment, pa.timestamp(unit)) == hash_of(moment)
    assert hash_of(moment.replace(tzinfo=UTC), pa.timestamp(unit, "UTC")) == hash_of(moment)
    assert hash_of(timedelta(seconds=7), pa.duration(unit)) == hash_of(timedelta(seconds=7))


def test_equal_dates_and_times_of_day_in_any_width_have_equal_hashes() -> None:
    assert hash_of(date(2026, 1, 1), pa.date64()) == hash_of(date(2026, 1, 1), pa.date32())
    assert hash_of(time(1, 2, 3), pa.time32("s")) == hash_of(time(1, 2, 3), pa.time64("ns"))


def test_timestamps_beyond_the_range_of_nanoseconds_have_a_hash() -> None:
    hashes = hash64(pa.array([2**40, 2**41], pa.timestamp("s")))
    assert hashes[0] != hashes[1]


def test_equal_decimals_of_any_scale_have_equal_hashes() -> None:
    assert hash_of(Decimal("1.5"), pa.decimal128(5, 1)) == hash_of(Decimal("1.5"), pa.decimal256(60, 40))
    assert hash_of(Decimal("100"), pa.decimal128(5, 0)) == hash_of(Decimal("100.00"), pa.decimal128(5, 2)) != hash_of(Decimal("1"))


def test_decimals_are_hashed_to_their_last_digit() -> None:
    assert hash_of(Decimal("1" * 38), pa.decimal128(38, 0)) != hash_of(Decimal("1" * 37 + "2"), pa.decimal128(38, 0))


def test_equal_floats_of_any_width_have_equal_hashes() -> None:
    assert hash_of(1.5, pa.float32()) == hash_of(1.5, pa.float64())
    assert hash_of(np.float16(1.5), pa.float16()) == hash_of(1.5, pa.float64())


def test_negative_zero_is_zero() -> None:
    assert hash_of(-0.0) == hash_of(0.0)


def test_all_nans_of_any_width_are_one_value() -> None:
    other = np.frombuffer(b"\1\0\0\0\0\0\xf8\xff", np.float64)[0]
    assert len({*hash64(pa.array([float("nan"), -float("nan"), other])).tolist(), hash_of(float("nan"), pa.float32())}) == 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    ],
    ids=lambda column: str(column.type),
)
def test_a_type_that_cannot_be_a_key_is_refused_by_its_name(column: pa.Array) -> None:
    with pytest.raises(UnhashableKey, match=r"type \S+.* can't be a key: use an integer"):
        hash64(column)


@pytest.mark.parametrize(
    "kind",
    [*INTEGERS, pa.float32(), pa.bool_(), pa.date32(), pa.date64(), pa.timestamp("ms"), *STRINGS, *BYTES, pa.decimal128(5, 2), pa.null()],
    ids=str,
)
def test_null_has_one_hash_in_every_type(kind: pa.DataType) -> None:
    assert hash64(pa.array([None, None], kind)).tolist() == [NULL_HASH, NULL_HASH]
    assert hash64(pa.array([], kind)).shape == (0,)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)) | st.lists(st.none() | st.text()) | st.lists(st.none() | st.booleans()))
def test_a_row_has_the_same_hash_wherever_it_stands(values: list[Any]) -> None:
    column = pa.array(values)
    assert hash64(column).tolist() == [hash_of(value, column.type) for value in values]
    assert hash64(column.slice(1)).tolist() == hash64(column).tolist()[1:]


def test_the_order_of_the_columns_matters() -> None:
    first, second = hash64(pa.array([1, 1])), hash64(pa.array([2, 1]))
    forth, back = combine([first, second]), combine([second, first])
    assert forth[0] != back[0]
    assert forth[1] == back[1]
    assert int(forth[0]) == 0xB3104FF4375A6F77
    assert combine([first]).tolist() == first.tolist()


def test_groups_are_the_hash_modulo_their_number() -> None:
    hashes = hash64(pa.array(range(1000)))
    for groups in (1, 2, 1024, MAX_GROUPS):
        assert group_of(hashes, groups).tolist() == [int(h) % groups for h in hashes]


def test_consecutive_integers_spread_over_the_groups() -> None:
    counts = np.bincount(group_of(hash64(pa.array(range(102_400))), 1024), minlength=1024)
    assert counts.min() > 60
    assert counts.max() < 140


@pytest.mark.parametrize("groups", [0, -2, 3, 1000, 65_536])
def test_a_number_of_groups_that_is_not_a_power_of_two_is_refused(groups: int) -> None:
    with pytest.raises(ValueError, match=f"{groups} key groups: use a power of two"):
        group_of(hash64(pa.array([1])), groups)


def test_whole_floats_and_decimals_have_the_hash_of_the_integer() -> None:
    for number in (0, 7, -7, 2**53, -(2**62)):
        assert hash_of(float(number), pa.float64()) == hash_of(Decimal(number), pa.decimal128(38, 2)) == hash_of(number, pa.int64())
    assert hash_of(-0.0, pa.float64()) == hash_of(Decimal("-0.00"), pa.decimal128(5, 2)) == hash_of(0, pa.int64())
