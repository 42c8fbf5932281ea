"""The type that holds two others: the order of the two makes no difference."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

from evenflow.engine.types.widening import value_type, wider

TYPES = [
    pa.null(), pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(),
    pa.decimal32(4, 1), pa.decimal128(5, 4), pa.decimal128(38, 0), pa.decimal256(60, 20), pa.string(), pa.large_string(), pa.string_view(),
    pa.binary(), pa.binary(2), pa.large_binary(), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.timestamp("ns"), pa.list_(pa.int64()),
]  # fmt: skip


def either(left: pa.DataType | None, right: pa.DataType | None) -> pa.DataType | None:
    return None if left is None or right is None else wider(left, right)


def test_the_order_of_two_types_makes_no_difference() -> None:
    for left, right in product(TYPES, TYPES):
        assert wider(left, right) == wider(right, left), (left, right)


def test_the_order_of_three_types_makes_no_difference() -> None:
    for a, b, c in product(TYPES, TYPES, TYPES):
        one, other = either(wider(a, b), c), either(a, wider(b, c))
        assert one == other, (a, b, c)


def test_a_type_holds_itself_and_nulls() -> None:
    for kind in TYPES:
        assert wider(kind, kind) == wider(kind, pa.null()) == kind


def test_the_common_type_of_two_types_holds_each_of_them() -> None:
    for left, right in product(TYPES, TYPES):
        both = wider(left, right)
        assert both is None or wider(both, left) == wider(both, right) == both, (left, right)


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.int8(), pa.uint8(), pa.int16()),
        (pa.float16(), pa.float32(), pa.float32()),
        (pa.decimal128(5, 1), pa.decimal128(5, 4), pa.decimal128(8, 4)),
        (pa.decimal128(38, 0), pa.decimal128(5, 4), pa.decimal256(42, 4)),
        (pa.string(), pa.string_view(), pa.large_string()),
        (pa.binary(2), pa.binary(3), pa.large_binary()),
        (pa.int64(), pa.string(), None),
        (pa.int64(), pa.bool_(), None),
        (pa.int64(), pa.decimal128(5, 1), pa.decimal128(20, 1)),
        (pa.string(), pa.binary(), None),
        (pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ns")),
        (pa.decimal256(76, 0), pa.decimal256(76, 1), None),
    ],
    ids=str,
)
def test_types_that_go_together_and_types_that_do_not(left: pa.DataType, right: pa.DataType, both: pa.DataType | None) -> None:
    assert wider(left, right) == both


def test_dictionaries_are_their_values() -> None:
    assert value_type(pa.array(["a"]).dictionary_encode().type) == pa.string()
    assert value_type(pa.array([Decimal("1.5")]).type) == pa.decimal128(2, 1)
