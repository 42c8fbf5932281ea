from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from evenflow.engine.errors import RecordError
from evenflow.engine.task.restored_types import RestoredTypes

OPERATOR: Any = SimpleNamespace(keys=("k",), context=SimpleNamespace(name="count"), key_columns=lambda rows: [rows.column("k")])
NUMBERS = [pa.array([5], pa.int32()), pa.array([5.0]), pa.array([Decimal("5.00")])]
TIMES = [pa.array([5], pa.timestamp("s")), pa.array([5], pa.timestamp("ns"))]
WIDENING = [(NUMBERS[0], NUMBERS[1]), (NUMBERS[0], NUMBERS[2]), (TIMES[0], TIMES[1]), (pa.array(["a"]), pa.array(["a"], pa.large_string()))]


def check(restored: pa.Array, arriving: pa.Array) -> None:
    types = RestoredTypes()
    types.learn([restored])
    types.check(OPERATOR, pa.record_batch({"k": arriving}))


@pytest.mark.parametrize("swapped", [False, True], ids=["", "swapped"])
@pytest.mark.parametrize(("one", "other"), WIDENING, ids=lambda column: str(column.type))
def test_keys_whose_types_widen_find_their_restored_state(one, other, swapped):
    check(*((other, one) if swapped else (one, other)))


@pytest.mark.parametrize("other", [pa.array(["5"]), pa.array([True]), TIMES[0]], ids=lambda column: str(column.type))
def test_keys_without_a_common_type_with_the_restored_ones_are_refused(other):
    with pytest.raises(RecordError, match=r"operator `count`: the key column `k` is .*, and is int32 in the state that was restored"):
        check(NUMBERS[0], other)
