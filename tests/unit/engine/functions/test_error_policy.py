"""Records that a user's function refuses: which are skipped, what is reported, and that nothing else changes."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.errors import FlowError, RecordError
from evenflow.engine.functions.error_policy import json_text
from evenflow.engine.functions.rows_encoder import RowsEncoder
from evenflow.engine.operators.processing.process import Process
from evenflow.engine.operators.processing.stateful_map import StatefulMap
from evenflow.engine.operators.processing.stateful_map_columns import StatefulMapColumns
from evenflow.engine.operators.rows.filter import Filter
from evenflow.engine.operators.rows.flat_map import FlatMap
from evenflow.engine.operators.rows.map import Map
from evenflow.engine.operators.rows.map_batches import MapBatches
from evenflow.state.backends.settings import StateSettings

INT = pa.schema({"n": pa.int64()})


def poison(row):
    if row["n"] < 0:
        raise ValueError(f"{row['n']} is poison")
    return row


def batched(rows):
    if pc.any(pc.less(rows["n"], 0)).as_py():
        raise ValueError("a batch with poison")
    return rows


STATELESS = [
    pytest.param(lambda on_error: Map(poison, None, on_error), id="map"),
    pytest.param(lambda on_error: FlatMap(lambda row: [poison(row)], None, on_error), id="flat_map"),
    pytest.param(lambda on_error: Filter(lambda row: poison(row) is row, on_error), id="filter"),
    pytest.param(lambda on_error: Filter(ef.col("n").cast(pa.uint64()) >= 0, on_error), id="expression"),
    pytest.param(lambda on_error: MapBatches(batched, on_error), id="map_batches"),
]


@pytest.mark.parametrize("operator", STATELESS)
def test_row_that_is_refused_is_skipped_and_counted_and_the_others_keep_their_order_and_times(drive, operator):
    step = drive(operator("skip"))
    step.process({"n": [1, -2, 3, -4, -5, 6]}, [10, 20, 30, 40, 50, 60])
    assert [row["n"] for row in step.rows["out"]] == [1, 3, 6]
    assert step.times["out"] == [10, 30, 60]
    assert step.operator.skipped_records == 3
    assert step.rows["dead_letters"] == []


@pytest.mark.parametrize("operator", STATELESS)
def test_dead_letter_has_the_record_and_its_time(drive, operator):
    step = drive(operator("dead_letter"))
    step.process({"n": [1, -2, 3], "day": [date(2026, 1, 31)] * 3}, [10, 20, 30])
    (letter,) = step.rows["dead_letters"]
    assert (letter["operator"], letter["key"]) == ("step", None)
    assert json.loads(letter["record"]) == {"n": -2, "day": "2026-01-31"}
    assert letter["error"]
    assert letter["message"]
    assert step.times["dead_letters"] == [20]


@pytest.mark.parametrize("operator", STATELESS)
def test_batch_of_poison_alone_emits_nothing(drive, operator):
    step = drive(operator("skip"))
    assert step.process({"n": [-1] * 5}) == []
    assert step.operator.skipped_records == 5


@pytest.mark.parametrize("operator", STATELESS)
def test_a_refused_row_stops_the_job_unless_it_may_be_skipped(drive, operator):
    with pytest.raises(RecordError, match="operator `step`"):
        drive(operator("stop")).process({"n": [1, -2, 3]})


@given(st.lists(st.one_of(st.integers(-3, 3), st.just("text"), st.just(2**70)), min_size=1, max_size=40), st.integers(1, 8))
def test_value_that_does_not_fit_its_column_is_refused_alone(drive, values, size):
    step = drive(Map(lambda row: {"n": values[row["place"]]}, INT, "dead_letter"))
    for first in range(0, len(values), size):
        step.process({"place": list(range(first, min(first + size, len(values))))})
    assert [row["n"] for row in step.rows["out"]] == [value for value in values if value not in ("text", 2**70)]
    refused = [json.loads(letter["record"])["place"] for letter in step.rows["dead_letters"]]
    assert refused == [place for place, value in enumerate(values) if value in ("text", 2**70)]


@given(st.lists(st.lists(st.sampled_from([1, 2, "text"]), max_size=3), min_size=1, max_size=20))
def test_all_results_of_a_row_are_dropped_if_one_does_not_fit(drive, results):
    step = drive(FlatMap(lambda row: [{"n": value} for value in results[row["place"]]], INT, "skip"))
    step.process({"place": list(range(len(results)))}, list(range(len(results))))
    kept = [(value, place) for place, values in enumerate(results) if "text" not in values for value in values]
    assert [(row["n"], time) for row, time in zip(step.rows["out"], step.times["out"], strict=True)] == kept


@given(st.lists(st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=3)), min_size=1, max_size=40))
def test_first_misfit_is_the_first_row_that_can_not_be_encoded_with_those_before_it(values):
    rows = [{"n": value} for value in values]
    fits = [_fits(rows[: length + 1]) for length in range(len(rows))]
    if not all(fits):
        place, error = RowsEncoder("step").first_misfit(rows)
        assert place == fits.index(False)
        assert "column `n`" in str(error)


def _fits(rows):
    try:
        RowsEncoder("step").encode(rows)
    except RecordError:
        return False
    return True


def gather(state, row):
    """Change a state in place before refusing the row."""
    state = state if state is not None else {"seen": []}
    state["seen"].append(row["n"])
    return state, {"k": row["k"], "seen": list(poison(row) and state["seen"])}


class Gather(ef.KeyedFunction):
    """The function `gather` with timers."""

    seen = ef.list_state()

    def on_row(self, key, row, context):
        self.seen.append(row["n"])
        context.timer(datetime.fromtimestamp(row["n"] + 1_000, UTC))
        yield {"k": key, "seen": list(self.seen)}
        poison(row)

    def on_timer(self, key, time, context):
        at = int(time.timestamp())
        self.seen.append(at)
        yield {"k": key, "seen": list(self.seen)}
        if at == 1_002:
            raise KeyError(at)


KEYED = [
    pytest.param(lambda on_error: StatefulMap(("k",), gather, None, on_error), id="stateful_map"),
    pytest.param(lambda on_error: Process(("k",), Gather(), None, on_error), id="process"),
]


@pytest.fixture(params=["memory", "lmdb"])
def state(request, tmp_path):
    return StateSettings(request.param, str(tmp_path), job="refusals")


@pytest.mark.parametrize("operator", KEYED)
def test_refused_record_leaves_no_trace_in_the_state_of_its_key(drive, operator, state):
    step = drive(operator("dead_letter"), state)
    step.process({"k": ["a", "b", "a", "c", "a"], "n": [1, 2, -3, -4, 5]}, [0] * 5)
    step.process({"k": ["c", "a", "a"], "n": [6, -7, 8]}, [0] * 3)
    seen = [(row["k"], row["seen"]) for row in step.rows["out"]]
    assert seen == [("a", [1]), ("b", [2]), ("a", [1, 5]), ("c", [6]), ("a", [1, 5, 8])]
    assert [(letter["key"], json.loads(letter["record"])["n"]) for letter in step.rows["dead_letters"]] == [
        ('"a"', -3),
        ('"c"', -4),
        ('"a"', -7),
    ]
    assert {letter["error"] for letter in step.rows["dead_letters"]} == {"ValueError"}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 4)), min_size=1, max_size=30), st.integers(1, 9))
@pytest.mark.parametrize("operator", KEYED)
def test_others_are_processed_as_if_the_refused_had_not_come(drive, operator, rows, size):
    step, clean = drive(operator("skip")), drive(operator("stop"))
    for first in range(0, len(rows), size):
        piece = rows[first : first + size]
        step.process([{"k": k, "n": n} for k, n in piece], [0] * len(piece))
        kept = [{"k": k, "n": n} for k, n in piece if n >= 0]
        if kept:
            clean.process(kept, [0] * len(kept))
    assert step.rows["out"] == clean.rows["out"]
    assert saved(step) == saved(clean)


def saved(step):
    """Return the packed state of each key."""
    return {row["k"]: row for chunk in step.operator.state.snapshot() for row in chunk.rows.to_pylist()}


def test_refused_timer_has_fired_and_left_no_trace(drive, state):
    step = drive(Process(("k",), Gather(), None, "dead_letter"), state)
    step.process({"k": ["a", "a", "a"], "n": [1, 2, 3]}, [0] * 3)
    step.advance(5_000_000_000)
    assert [row["seen"] for row in step.rows["out"][3:]] == [[1, 2, 3, 1_001], [1, 2, 3, 1_001, 1_003]]
    (letter,) = step.rows["dead_letters"]
    assert (letter["key"], letter["record"], letter["error"]) == ('"a"', '{"timer": "1970-01-01T00:16:42+00:00"}', "KeyError")


def test_result_that_does_not_fit_leaves_the_state_as_it_was(drive):
    step = drive(StatefulMap(("k",), lambda n, row: ((n or 0) + 1, {"n": "text" if row["v"] else (n or 0) + 1}), INT, "dead_letter"))
    step.process({"k": ["a"] * 4, "v": [False, True, True, False]})
    assert [row["n"] for row in step.rows["out"]] == [1, 2]
    assert [letter["key"] for letter in step.rows["dead_letters"]] == ['"a"', '"a"']


def test_columns_that_are_refused_leave_their_keys_as_they_were(drive):
    def running(state, rows):
        state["n"] += 100
        if (rows["v"] < 0).any():
            raise ValueError("poison")
        count = rows.running_count(state["n"] - 100)
        return {"n": rows.last(count)}, {"k": rows["k"], "n": count}

    step = drive(StatefulMapColumns(("k",), running, {"n": "int64"}, None, "dead_letter"))
    step.process({"k": ["a", "b", "a", "b", "c"], "v": [1, -1, 1, 1, -1]})
    assert sorted((row["k"], row["n"]) for row in step.rows["out"]) == [("a", 1), ("a", 2), ("b", 1)]
    assert [letter["key"] for letter in step.rows["dead_letters"]] == ['"b"', '"c"']
    assert sorted(key for chunk in step.operator.state.snapshot() for key in chunk.rows["k"].to_pylist()) == ["a", "b"]


def test_state_that_can_not_be_saved_is_refused_with_its_record(drive):
    def numbers(state, row):
        seen = [*(state or []), row["v"] or bytearray(2)]
        return seen, {"n": len(seen)}

    step = drive(StatefulMap(("k",), numbers, None, "dead_letter"))
    step.process({"k": ["a"] * 4, "v": [True, False, True, False]})
    assert [row["n"] for row in step.rows["out"]] == [1, 2]
    assert [letter["message"].partition("numbers: ")[2].partition(";")[0] for letter in step.rows["dead_letters"]] == [
        "the state can't be saved: `state[1]` is a bytearray: store bytes(...)",
        "the state can't be saved: `state[2]` is a bytearray: store bytes(...)",
    ]


def test_a_memory_error_is_not_skipped(drive):
    def exhausted(row):
        raise MemoryError

    with pytest.raises(RecordError, match="MemoryError"):
        drive(Map(exhausted, None, "skip")).process({"n": [1]})


def test_dead_letters_need_an_error_policy_and_a_reader():
    flow = ef.Dataflow("f")
    stream = flow.read(ef.from_items([1]))
    with pytest.raises(FlowError, match=r'operator `from_items` has no dead letters: give it on_error="dead_letter"'):
        stream.dead_letters  # noqa: B018 -- it raises
    with pytest.raises(FlowError, match=r'map\(on_error=.retry.\): expected "stop", "skip" or "dead_letter"'):
        stream.map(poison, on_error="retry")
    stream.map(poison, on_error="dead_letter").named("parse").write(ef.to_list([]))
    with pytest.raises(FlowError, match=r"the dead letters of operator `parse` go nowhere"):
        flow.plan()


def test_aggregates_have_no_error_policy():
    keyed = ef.Dataflow("f").read(ef.from_items([1])).key_by("item")
    with pytest.raises(FlowError, match="aggregate has no on_error"):
        keyed.aggregate(n=ef.count(), on_error="skip")


def test_any_value_can_be_shown_in_a_dead_letter():
    row = {"at": datetime(2026, 1, 31, tzinfo=UTC), "price": Decimal("1.5"), "bytes": b"\xff", "not": math.nan, "in": [math.inf, (1, None)]}
    assert json.loads(json_text(row)) == {
        "at": "2026-01-31T00:00:00+00:00",
        "price": "1.5",
        "bytes": "ff",
        "not": "nan",
        "in": ["inf", [1, None]],
    }
