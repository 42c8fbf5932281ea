from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.aggregates.base import Accumulator
from evenflow.engine.batch import Batch
from evenflow.engine.errors import FlowError, ProtocolError, RecordError

ROWS = Batch(pa.record_batch({"x": [1, 2, 3], "y": ["a", "b", "c"]}))
CODES = np.array([0, 1, 0])


class Collect(ef.Aggregate):
    """The values of `x`, sorted."""

    def create(self) -> Any:
        return []

    def add(self, accumulator: Any, row: dict[str, Any]) -> Any:
        accumulator.append(row["x"])
        return accumulator

    def merge(self, a: Any, b: Any) -> Any:
        a.extend(b)
        return a

    def finish(self, accumulator: Any) -> Any:
        return sorted(accumulator)


def bound(aggregate: ef.Aggregate) -> Accumulator:
    return aggregate.bind(ROWS.rows.schema, "mine")


def test_rows_are_dicts_with_all_columns() -> None:
    class Rows(Collect):
        def add(self, accumulator: Any, row: dict[str, Any]) -> Any:
            return [*accumulator, f"{row['x']}{row['y']}"]

    accumulator = bound(Rows())
    assert accumulator.finish(accumulator.partial(ROWS, CODES, 3)).to_pylist() == [["1a", "3c"], ["2b"], []]


def test_a_merge_that_changes_its_left_side_leaves_the_parts_alone() -> None:
    accumulator = bound(Collect())
    left, right = accumulator.partial(ROWS, CODES, 2), accumulator.partial(ROWS, CODES, 2)
    merged = accumulator.merge(left, right)
    assert merged[0].tolist() == [[1, 3, 1, 3], [2, 2]]
    assert left[0].tolist() == right[0].tolist() == [[1, 3], [2]]
    assert accumulator.combine(left, np.array([1, 1]), 2)[0].tolist() == [[], [1, 3, 2]]
    assert left[0].tolist() == [[1, 3], [2]]


@pytest.mark.parametrize("value", [None, True, -(2**63), 2**64 - 1, 0.5, "ž", b"\xff", [1, [2]], (1, (2, [3])), {"a": {1: (2,)}}], ids=repr)
def test_accumulators_come_off_the_wire_as_they_were(value: Any) -> None:
    accumulator = bound(Collect())
    (array,) = accumulator.to_arrow((np.fromiter([value], object, 1),))
    assert array.type == pa.large_binary()
    (received,) = accumulator.from_arrow([array])
    assert received[0] == value
    assert type(received[0]) is type(value)


@pytest.mark.parametrize("value", [object(), [{"a": len}]], ids=["object", "nested"])
def test_an_accumulator_that_can_not_be_saved_is_shown(value: Any) -> None:
    accumulator = bound(Collect())
    with pytest.raises(RecordError, match=r"operator `mine`: Collect: the accumulator can't be saved: `accumulator.*` is a .*: store"):
        accumulator.to_arrow((np.fromiter([value], object, 1),))


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x01\x02", b"\xd4\x07\x00", None], ids=["empty", "unused", "more", "extension", "null"])
def test_bytes_that_are_not_an_accumulator_are_refused(data: bytes | None) -> None:
    with pytest.raises(ProtocolError, match="operator `mine`: an accumulator of Collect is not valid msgpack"):
        bound(Collect()).from_arrow([pa.array([data], pa.large_binary())])


def test_an_error_in_add_names_the_operator_and_the_record() -> None:
    class Fails(Collect):
        def add(self, accumulator: Any, row: dict[str, Any]) -> Any:
            return accumulator if row["x"] < 3 else row["missing"]

    with pytest.raises(RecordError, match=r"operator `mine`: Fails.add raised KeyError: 'missing'\n  record: \{'x': 3, 'y': 'c'\}"):
        bound(Fails()).partial(ROWS, CODES, 2)


@pytest.mark.parametrize("method", ["create", "merge", "finish"])
def test_an_error_elsewhere_names_the_operator_and_the_method(method: str) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("no")

    fail.__name__ = method
    aggregate = type("Fails", (Collect,), {method: fail})()
    working = bound(Collect()).partial(ROWS, CODES, 2)
    accumulator = bound(aggregate)
    calls = {
        "create": lambda: accumulator.empty(1),
        "merge": lambda: accumulator.merge(working, working),
        "finish": lambda: accumulator.finish(working),
    }
    with pytest.raises(RecordError, match=f"operator `mine`: Fails.{method} raised ValueError: no"):
        calls[method]()


@pytest.mark.parametrize("output_type", [pa.list_(pa.int32()), None], ids=["given", "inferred"])
def test_the_output_type_is_given_or_inferred(output_type: pa.DataType | None) -> None:
    aggregate = Collect()
    aggregate.output_type = output_type
    accumulator = bound(aggregate)
    assert accumulator.output_type == output_type
    assert accumulator.finish(accumulator.partial(ROWS, CODES, 2)).type == (output_type or pa.list_(pa.int64()))


def test_an_unknown_output_type_is_refused() -> None:
    aggregate = Collect()
    aggregate.output_type = "integer"
    with pytest.raises(FlowError, match=r"operator `mine`: Collect\.output_type: type 'integer' is unknown; there are: int8"):
        bound(aggregate)


def test_a_result_of_another_type_is_shown() -> None:
    aggregate = Collect()
    aggregate.output_type = "int64"
    accumulator = bound(aggregate)
    with pytest.raises(RecordError, match=r"operator `mine`: Collect.finish: the result \[1, 3\] is not int64"):
        accumulator.finish(accumulator.partial(ROWS, CODES, 2))


def test_results_of_several_types_are_refused() -> None:
    class Mixed(Collect):
        def finish(self, accumulator: Any) -> Any:
            return accumulator[0] if len(accumulator) == 1 else "many"

    accumulator = bound(Mixed())
    with pytest.raises(RecordError, match="the results are of several types; set `output_type`"):
        accumulator.finish(accumulator.partial(ROWS, CODES, 2))
