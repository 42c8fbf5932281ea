"""Columns of Python's objects in pandas' frames: their values arrive as they were, or the frame is refused by the column's name."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from evenflow.engine.errors import FlowError
from evenflow.engine.types.frames import frame_as_arrow


def frame(values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"n": range(len(values)), "x": pd.Series(values, dtype=object)})


@pytest.mark.parametrize(
    "values",
    [
        [date(2026, 1, 31), datetime(2026, 1, 31, 5)],
        [datetime(2026, 1, 31, 5), date(2026, 1, 31)],
        [datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 1, 31)],
        [b"a", "b"],
        [True, 1],
        [1, "a"],
        [1.5, Decimal("0.1")],
        [9_007_199_254_740_993, 1.5],
        [2**63, -1],
        [{"a": 1}, {"a": "b"}],
    ],
)
def test_values_without_a_common_type_are_refused_by_name(values):
    with pytest.raises(
        FlowError, match="from_items: the DataFrame can't become an Arrow table: its column `x` holds no values of one type"
    ):
        frame_as_arrow(frame(values), "from_items")


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([pd.Timestamp(1), datetime(1970, 1, 1)], pa.timestamp("ns"), [1, 0]),
        ([pd.Timedelta(1), timedelta(0), pd.NaT], pa.duration("ns"), [1, 0, None]),
        ([1, 2.5, None, np.nan, pd.NA], pa.float64(), [1.0, 2.5, None, None, None]),
        (["a", np.nan], pa.string(), ["a", None]),
        ([{"a": 1}, {"b": 2.5}], pa.struct({"a": pa.int64(), "b": pa.float64()}), [{"a": 1, "b": None}, {"a": None, "b": 2.5}]),
        ([2**64 - 1, 0], pa.uint64(), [2**64 - 1, 0]),
        ([Decimal("1.5"), 2], pa.decimal128(21, 1), [Decimal("1.5"), Decimal(2)]),
        ([None], pa.null(), [None]),
    ],
)
def test_values_arrive_as_they_were(values, kind, expected):
    table = frame_as_arrow(frame(values), "from_items")
    assert table.schema == pa.schema({"n": pa.int64(), "x": kind})
    column = table.column("x").combine_chunks()
    assert (column.view(pa.int64()) if pa.types.is_temporal(kind) else column).to_pylist() == expected


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(FlowError, match="two of its columns have the name `x`"):
        frame_as_arrow(pd.DataFrame([["a", "b"]], columns=["x", "x"]), "from_items")
