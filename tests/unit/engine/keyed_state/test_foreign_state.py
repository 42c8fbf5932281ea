"""State from a savepoint is installed, or refused with an error that names the operator: never a crash, never a wrong state."""

from __future__ import annotations

from itertools import product

import msgpack
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.keyed_state.kinds.objects import STATE
from evenflow.engine.operators.aggregation.aggregate_running import AggregateRunning
from evenflow.engine.operators.aggregation.aggregate_windows import AggregateWindows
from evenflow.engine.operators.processing.process import Process
from evenflow.engine.operators.processing.stateful_map import StatefulMap
from evenflow.engine.operators.processing.stateful_map_columns import StatefulMapColumns

ROWS = {"k": ["a", "b", "a", "c"], "v": [1, 2, 3, 4]}
TIMES = [0, 10, 20, 30]


class Sum(ef.KeyedFunction):
    total = ef.value_state(default=0)

    def on_row(self, key, row, context):
        self.total += row["v"]
        yield {"k": key, "total": self.total}


def summed(state, row):
    total = (state or 0) + row["v"]
    return total, {"k": row["k"], "total": total}


def running(state, rows):
    total = rows.running_sum("v", state["total"])
    return {"total": rows.last(total)}, {"k": rows["k"], "total": total}


MAKE = {
    "stateful_map": lambda: StatefulMap(("k",), summed),
    "process": lambda: Process(("k",), Sum()),
    "columns": lambda: StatefulMapColumns(("k",), running, {"total": np.dtype("int64")}),
    "running": lambda: AggregateRunning(("k",), {"total": ef.sum("v")}, updates=True),
    "windows": lambda: AggregateWindows(("k",), {"total": ef.sum("v")}, ef.tumbling("1s")),
}


def saved(drive, kind):
    step = drive(MAKE[kind]())
    step.process(ROWS, TIMES)
    return list(step.operator.state.snapshot())


@pytest.mark.parametrize("kind", MAKE)
def test_state_of_such_an_operator_is_taken(drive, kind):
    step = drive(MAKE[kind]())
    for chunk in saved(drive, kind):
        step.operator.state.restore(chunk, "step")
    step.process({"k": ["a"], "v": [10]}, [40])
    step.advance(10**9)
    assert {"k": "a", "total": 14}.items() <= next(row for row in step.rows["out"] if row["k"] == "a").items()


@pytest.mark.parametrize(("of", "into"), [pair for pair in product(MAKE, MAKE) if pair[0] != pair[1]])
def test_state_of_another_kind_of_operator_is_refused_by_name(drive, of, into):
    step, chunk = drive(MAKE[into]()), saved(drive, of)[0]
    with pytest.raises(RecordError, match="operator `step`: the checkpoint's state under this name is not of an operator like this one"):
        step.operator.state.restore(chunk, "step")


def taken_or_refused(step, rows):
    """Return True if it was installed; any error but a RecordError that names the operator fails the test."""
    try:
        step.operator.state.restore(Batch(rows), "step")
    except RecordError as error:
        return error.operator != "step"
    return True


@pytest.mark.parametrize("kind", ["stateful_map", "process"])
@given(packed=st.binary(max_size=30) | st.recursive(st.none() | st.integers(0, 9) | st.text(max_size=2), st.lists).map(msgpack.packb))
@example(packed=msgpack.packb([0, 0, ""]))
def test_packed_state_of_any_bytes_is_taken_or_refused(drive, kind, packed):
    step = drive(MAKE[kind]())
    taken = taken_or_refused(step, pa.record_batch({"k": ["a"], STATE: pa.array([packed], pa.binary())}))
    assert len(list(step.operator.state.snapshot())) == taken


COLUMN = st.sampled_from([pa.array([1]), pa.array(["x"]), pa.array([None]), pa.array([b"\x01"]), pa.array([1.5]), pa.array([[1]])])
NAME = st.sampled_from(["k", STATE, "__total", "__rows", "__pane", "__0.0", "v"])


@pytest.mark.parametrize("kind", MAKE)
@given(columns=st.dictionaries(NAME, COLUMN, min_size=1))
def test_chunk_of_any_columns_is_taken_or_refused(drive, kind, columns):
    step = drive(MAKE[kind]())
    taken = taken_or_refused(step, pa.record_batch(columns))
    assert not taken or {"k"} < set(columns)
