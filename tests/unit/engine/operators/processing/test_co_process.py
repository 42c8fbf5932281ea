"""`co_process`: both streams share the states of a key, for all types of their key columns, over every backend."""

from __future__ import annotations

import json
from itertools import count

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.errors import RecordError
from evenflow.engine.joins.sides import LEFT, RIGHT
from evenflow.engine.operators.processing.co_process import CoProcess
from evenflow.state.backends.settings import StateSettings

JOBS = count()


class Heard(ef.CoKeyedFunction):
    """Says what the key's rows were so far, of both sides."""

    heard = ef.list_state()

    def on_left(self, key, row, context):
        self.heard.append(f"left {row['a']}")
        yield {"key": key, "heard": list(self.heard)}

    def on_right(self, key, row, context):
        self.heard.append(f"right {row['b']}")
        if row["b"] < 0:
            raise ValueError("negative")
        yield {"key": key, "heard": list(self.heard)}


@pytest.fixture(params=["memory", "lmdb", "server"])
def place(request):
    backend = request.getfixturevalue("state_server") if request.param == "server" else request.param
    return StateSettings(backend, job=f"co-process-{next(JOBS)}")


@pytest.fixture
def step(drive, place):
    """Return a driven operator, which is closed at the end."""
    operator = CoProcess(("__key0",), Heard(), left_keys=("k",), right_keys=("id",))
    driven = drive(operator, place, 0)
    yield driven
    driven.operator.close()


def tagged(side, batch, key):
    return side.tag(ef.Batch(pa.record_batch(batch)), (key,))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([7], pa.int32()), pa.array([7, 1 << 40], pa.int64())),
        (pa.array([0.5], pa.float32()), pa.array([0.5, 1e300], pa.float64())),
        (pa.array([1_000], pa.timestamp("s")), pa.array([1_000_000_000, 1], pa.timestamp("us"))),
        (pa.array([None]), pa.array([None, "x"], pa.string())),
    ],
    ids=["integers", "floats", "times", "nulls"],
)
def test_equal_keys_of_two_types_have_one_state(step, left, right):
    step.process_batch(tagged(LEFT, {"k": left, "a": [1]}, "k"))
    heard = step.process_batch(tagged(RIGHT, {"id": right, "b": [2, 3]}, "id"))
    assert [row["heard"] for row in heard] == [["left 1", "right 2"], ["right 3"]]


def test_key_types_that_are_never_equal_are_an_error_that_names_both_columns(step):
    step.process_batch(tagged(LEFT, {"k": [7], "a": [1]}, "k"))
    with pytest.raises(RecordError, match="left's key column `k` is int64 and right's `id` is string, which are never equal: convert one"):
        step.process_batch(tagged(RIGHT, {"id": ["7"], "b": [2]}, "id"))


def test_dead_letter_of_either_side_is_the_row_itself_and_leaves_no_trace(drive):
    operator = CoProcess(("__key0",), Heard(), on_error="dead_letter", left_keys=("k",), right_keys=("id",))
    step = drive(operator)
    assert step.process_batch(tagged(LEFT, {"k": [7], "a": [1]}, "k"))[0]["heard"] == ["left 1"]
    heard = step.process_batch(tagged(RIGHT, {"id": [7, 7], "b": [-1, 2]}, "id"))
    assert [row["heard"] for row in heard] == [["left 1", "right 2"]]
    letters = [(letter["key"], json.loads(letter["record"]), letter["error"]) for letter in step.rows["dead_letters"]]
    assert letters == [("7", {"id": 7, "b": -1}, "ValueError")]
