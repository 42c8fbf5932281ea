"""The conversion of every pair of values of all types to columns: each value arrives unchanged, or an error is raised."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.python.items import rows_of
from evenflow.engine.batch import Batch, column_values
from evenflow.engine.errors import RecordError
from evenflow.engine.functions.keyed_function import KeyedFunction
from evenflow.engine.functions.rows_encoder import RowsEncoder
from evenflow.engine.operators.processing.process import Process
from evenflow.engine.operators.processing.stateful_map import StatefulMap
from evenflow.engine.operators.rows.flat_map import FlatMap
from evenflow.engine.operators.rows.key_by import KeyBy
from evenflow.engine.operators.rows.map import Map
from evenflow.engine.operators.rows.map_batches import MapBatches
from evenflow.engine.types.names import type_named
from evenflow.engine.types.value_column import ValueColumn

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 127, 128, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, 0.0, -0.0, 0.5, 1.0,
    1e300, 5e-324, math.inf, -math.inf, math.nan, 2.0**53, Decimal(0), Decimal("1.50"), Decimal("1E+5"), Decimal("1E-20"),
    Decimal(10) ** 37, Decimal(10) ** 75, Decimal("0." + "1" * 38), "", "a", "\0é", b"", b"a", b"\xff",
    date(1, 1, 1), date(2026, 1, 1), date(9999, 12, 31),
    datetime(1, 1, 1), datetime(2026, 1, 1), datetime(2026, 1, 1, 12, 30, 0, 1), datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))), time(0), time(23, 59, 59, 999999),
    timedelta(0), timedelta(-1, 1, 1), timedelta(10**6), [], [None], [1], [0.5], ["a"], [[1], [0.5]], {}, {"a": 1}, {"a": 0.5}, {"b": "x"},
    {"a": {"b": 1}}, {"a": {"c": [0.5]}}, np.int8(5), np.uint64(2**63), np.float32(0.1), np.float64(0.25), np.bool_(True),
]  # fmt: skip
DECLARED = [
    "int8", "int16", "int32", "int64", "uint8", "uint64", "float32", "float64", "bool", "string", "large_string", "binary", "date32",
    "date64", "time32[s]", "time64[us]", "timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]", "timestamp[us, tz=UTC]",
    "duration[s]", "duration[us]", "decimal128(3, 2)", "decimal128(38, 0)", "decimal256(76, 38)", "list<int64>",
    "large_list<float64>", "struct<a: int64>",
    "struct<a: float64, b: string>", "map<string, int64>",
]  # fmt: skip
COUNTS = ("date", "time", "timestamp", "duration")
"""Declared types in which an integer is a count of units."""


def refused(error: Exception, *said: str) -> None:
    """Check that the error has this text."""
    assert all(part in str(error) for part in said), error


def equal(arrived: Any, given: Any) -> bool:
    """Return True if a value arrived unchanged: a number may have another type, a struct more fields, all of them null."""
    if isinstance(given, dict):
        if isinstance(arrived, list):  # a map comes back as pairs
            arrived = dict(arrived)
        return isinstance(arrived, dict) and all(equal(arrived.get(name), given.get(name)) for name in {*arrived, *given})
    if isinstance(given, list):
        return isinstance(arrived, list) and len(arrived) == len(given) and all(map(equal, arrived, given))
    if given is None or arrived is None:
        return given is None and arrived is None
    if isinstance(given, (float, np.floating)) and math.isnan(given):
        return isinstance(arrived, float) and math.isnan(arrived)
    if isinstance(given, (bool, np.bool_)) != isinstance(arrived, bool):
        return False
    if isinstance(given, datetime) != isinstance(arrived, datetime):
        return False
    return bool(arrived == (given.item() if isinstance(given, np.generic) else given))


def ready(operator: Any, drive: Any) -> Callable[[list[Any]], list[Any]]:
    """Return a function from numbers, which stand for values, to the results of `operator` for a batch of these."""
    step = drive(operator)
    return lambda numbers: [row.get("v", row.get("key")) for row in step.process({"i": numbers, "k": [1] * len(numbers)})]


class Yielding(KeyedFunction):
    def __init__(self, value: Callable[[Any], Any]) -> None:
        self.value = value

    def on_row(self, key: Any, row: dict[str, Any], context: Any) -> Iterator[Any]:
        yield self.value(row)


WAYS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "map": lambda f: Map(lambda row: {"v": f(row)}),
    "flat_map": lambda f: FlatMap(lambda row: [{"v": f(row)}]),
    "map_batches": lambda f: MapBatches(lambda rows: {"v": [f(row) for row in rows.to_pylist()]}),
    "stateful_map": lambda f: StatefulMap(("k",), lambda state, row: (1, {"v": f(row)})),
    "process": lambda f: Process(("k",), Yielding(lambda row: {"v": f(row)})),
    "key_by": lambda f: KeyBy(f, "key"),
}


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 2], ids=["one by one", "together"])
@pytest.mark.parametrize("way", WAYS)
def test_every_pair_arrives_as_it_was_or_is_refused(way: str, cut: int, drive: Any) -> None:
    arrived = 0
    for pair in product(VALUES[::2] if way != "map" else VALUES, VALUES):
        if way == "key_by" and any(isinstance(value, (list, dict)) for value in pair):
            continue
        process = ready(WAYS[way](lambda row, pair=pair: pair[row["i"]]), drive)
        got: list[Any] = []
        try:
            for first in range(0, 2, cut):
                got += process(list(range(first, first + cut)))
        except RecordError as error:
            refused(error, "`step`", "column `")
        else:
            assert len(got) == 2, pair
            assert all(map(equal, got, pair)), (pair, got)
            arrived += 1
    assert arrived > 300


@pytest.mark.parametrize("kind", DECLARED)
def test_every_value_arrives_as_it_was_in_a_declared_type_or_is_refused(kind: str) -> None:
    wanted = type_named(kind)
    for value in VALUES:
        try:
            column = RowsEncoder("step", pa.schema([("v", wanted)])).encode([{"v": value}]).column(0)
        except RecordError as error:
            refused(error, f"column `v` is {wanted} in schema")
            continue
        assert column.type == wanted
        if kind.startswith(COUNTS) and isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            assert column.view(pa.int32() if wanted.bit_width == 32 else pa.int64()).to_pylist() == [int(value)], value
            continue
        (arrived,) = column.to_pylist()
        if kind == "float32" and isinstance(value, (float, np.floating)):
            assert np.float32(value) == arrived or math.isnan(value), value
        else:
            assert equal(arrived, value), (value, arrived)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 2], ids=["one by one", "together"])
def test_every_pair_of_items_arrives_as_it_was_or_is_refused(cut: int) -> None:
    for pair in product(VALUES, VALUES):
        known: dict[str, ValueColumn] = {}
        got: list[Any] = []
        try:
            for first in range(0, 2, cut):
                got += rows_of([{"v": value} for value in pair[first : first + cut]], "source", known).column(0).to_pylist()
        except RecordError as error:
            refused(error, "column `v`")
        else:
            assert all(map(equal, got, pair)), (pair, got)


@given(st.lists(st.sampled_from(VALUES), min_size=1, max_size=8), st.integers(1, 8))
def test_any_values_in_any_batches_arrive_as_they_were_or_are_refused(values: list[Any], size: int) -> None:
    encoder, got = RowsEncoder("step"), list[Any]()
    try:
        for first in range(0, len(values), size):
            got += encoder.encode([{"v": value} for value in values[first : first + size]]).column(0).to_pylist()
    except RecordError as error:
        refused(error, "column `v`")
    else:
        assert all(map(equal, got, values)), (values, got)


@given(st.lists(st.sampled_from(VALUES), min_size=1, max_size=8), st.integers(1, 8))
def test_batches_of_one_stream_become_one_batch_of_the_same_values_or_are_refused(values: list[Any], size: int) -> None:
    """Buffers and state join batches of different types in the same way."""
    encoder, batches = RowsEncoder("step"), list[Batch]()
    try:
        for first in range(0, len(values), size):
            batches.append(Batch(encoder.encode([{"v": value} for value in values[first : first + size]])))
    except RecordError:
        return
    try:
        joined = Batch.concat(batches).rows.column(0)
    except ValueError as error:
        refused(error, "can't be represented exactly")
    else:
        assert all(map(equal, column_values(joined), values)), values
