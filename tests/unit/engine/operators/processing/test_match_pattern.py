"""The operator `pattern` driven by hand: lateness, types, functions, errors and limits, over every backend."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.columns import Columns
from evenflow.engine.errors import RecordError
from evenflow.engine.operators.processing import match_pattern
from evenflow.engine.operators.processing.match_pattern import MatchPattern
from evenflow.engine.patterns.pattern import make_pattern
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.state_description import compared
from evenflow.engine.time.event_time import LATEST

PLACES = ("memory", "lmdb", "server")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def up(*more, skip="no_skip", within="1s"):
    """Return a pattern of a small and a later big number."""
    return MatchPattern(("k",), make_pattern([ef.step("small", ef.col("n") < 5), *more, ef.step("big", ef.col("n") >= 5)], within, skip))


@pytest.mark.parametrize("place", PLACES)
def test_rows_of_a_key_are_matched_in_the_order_of_their_times(drive_in, place):
    step = drive_in(place)(up())
    assert step.process({"k": ["a", "b", "a"], "n": [7, 1, 2]}, [30, 10, 20]) == []
    assert step.advance(30) == [], "a row of time 30 may still come"
    small, big = {"k": "a", "n": 2}, {"k": "a", "n": 7}
    micros = lambda n: EPOCH + timedelta(microseconds=n)  # noqa: E731
    assert step.advance(31) == [{"k": "a", "small": small, "big": big, "match_start": micros(20), "match_end": micros(30)}]
    assert step.times["out"] == [30]
    assert [row["k"] for row in step.process({"k": ["b"], "n": [9]}, [40]) or step.advance(MAX_TIME)] == ["b"]
    assert step.operator.state.backend.count() == 0


def test_rows_of_one_time_are_matched_in_the_order_of_their_arrival(drive):
    step = drive(up())
    step.process({"k": ["a", "a", "b", "b"], "n": [1, 9, 9, 1]}, [5, 5, 5, 5])
    assert [row["k"] for row in step.advance(MAX_TIME)] == ["a"]


def test_late_rows_go_to_the_side_stream_unchanged(drive):
    step = drive(up())
    step.advance(50)
    step.process({"k": ["a", "a"], "n": [1, 9]}, [49, 50])
    assert step.rows["late"] == [{"k": "a", "n": 1}]
    assert step.times["late"] == [49]
    assert step.operator.late_records == 1
    assert step.advance(MAX_TIME) == []


def test_match_that_waited_has_the_time_at_which_it_was_decided(drive):
    steps = [ef.step("a", ef.col("n") < 5), ef.step("b", ef.col("n") > 7)]
    step = drive(MatchPattern(("k",), make_pattern([*steps, ef.step("c", ef.col("n") == 6, absent=True)], 10e-6, "past_last")))
    step.process({"k": ["x"] * 4, "n": [1, 2, 9, 6]}, [0, 4, 5, 12])
    assert [row["a"]["n"] for row in step.advance(MAX_TIME)] == [1]
    assert step.times["out"] == [10], "it was decided when `within` was over"


def test_columns_of_matches_are_known_before_the_job_runs(drive):
    operator = MatchPattern(
        ("k",), make_pattern([ef.step("one", ef.col("n") > 0), ef.step("two", ef.col("n") > 0, times=2)], "1s", "no_skip")
    )
    schema = pa.schema([("k", pa.dictionary(pa.int32(), pa.string())), ("n", pa.int64()), ("at", pa.timestamp("ns"))])
    known = operator.known_columns([Columns.of(schema)])
    struct = pa.struct([("k", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("ns"))])
    assert known.complete
    assert list(known.types) == ["k", "one", "two", "match_start", "match_end"]
    assert (known.type_of("one"), known.type_of("two")) == (struct, pa.list_(struct))
    step = drive(operator)
    rows = pa.RecordBatch.from_pylist([{"k": "a", "n": n, "at": n} for n in range(1, 4)], schema=schema)
    step.process_batch(Batch(rows, pa.array([1, 2, 3]).to_numpy()))
    step.advance(MAX_TIME)
    assert [step.schemas[0].field(name).type for name in known.types] == list(known.types.values())


@pytest.mark.parametrize("place", PLACES)
def test_rows_of_a_key_take_the_types_that_hold_them_all(drive_in, place):
    step = drive_in(place)(up())
    step.process(pa.table({"k": ["a"], "n": [1], "x": pa.nulls(1)}).to_batches()[0].to_pylist(), [1])
    step.advance(2)
    step.process([{"k": "a", "n": 8, "x": Decimal("1.5")}], [3])
    (match,) = step.advance(MAX_TIME)
    assert (match["small"]["x"], match["big"]["x"]) == (None, Decimal("1.5"))


def test_rows_of_a_key_whose_types_do_not_fit_are_refused(drive):
    step = drive(up())
    step.process([{"k": "a", "n": 1, "x": 1}], [1])
    with pytest.raises(RecordError, match=r"operator `step`: column `x` .*: give the columns one type before the pattern"):
        step.process([{"k": "a", "n": 8, "x": "text"}], [3])


def test_function_gets_the_rows_matched_so_far(drive):
    def rises(row, matched):
        return row["n"] > max(each["n"] for rows in matched.values() for each in rows)

    pattern = make_pattern([ef.step("first", lambda row: row["n"] == 1), ef.step("more", rises, times=3)], "1s", "no_skip")
    step = drive(MatchPattern(("k",), pattern))
    step.process({"k": ["a"] * 5, "n": [1, 3, 2, 4, 5]}, [1, 2, 3, 4, 5])
    assert [[row["n"] for row in match["more"]] for match in step.advance(MAX_TIME)] == [[3, 4, 5]]


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        (lambda row: 1 / 0, "raised ZeroDivisionError"),
        (lambda row, matched: matched["none"], "raised KeyError: 'none'"),
        (lambda row: None, "step 's': .* returned None: return True or False"),
        (lambda row, matched: 3, "step 's': .* returned 3: return True or False"),
        (ef.col("k") + 1 > 2, "step 's': "),
    ],
)
def test_condition_that_fails_names_operator_key_and_record(drive, condition, problem):
    step = drive(MatchPattern(("k",), make_pattern([ef.step("s", condition)], "1s", "no_skip")))

    def run():
        step.process({"k": ["a"], "n": [7]}, [1])
        step.advance(MAX_TIME)

    with pytest.raises(RecordError, match=f"operator `step`: .*{problem}") as raised:
        run()
    if not isinstance(condition, ef.Expression):
        assert "key: 'a'" in str(raised.value)
        assert "{'k': 'a', 'n': 7}" in str(raised.value)


def test_stream_without_event_time_and_times_near_the_last_year_are_refused(drive):
    with pytest.raises(RecordError, match=r"operator `step`: a pattern needs event time, .*: give the source event_time="):
        drive(up()).process({"k": ["a"], "n": [1]})
    with pytest.raises(RecordError, match=r"operator `step`: a record of .* is less than `within` before the end of the year 9999"):
        drive(up()).process({"k": ["a"], "n": [1]}, [LATEST - 5])


def test_key_with_too_many_partial_matches_is_refused_by_name(drive, monkeypatch):
    monkeypatch.setattr(match_pattern, "MOST_ROWS", 20)
    step = drive(up())
    step.process({"k": ["a"] * 21, "n": [1] * 21}, list(range(21)))
    with pytest.raises(RecordError, match="operator `step`: its partial matches hold more than 20 rows within 1 s: make the") as raised:
        step.advance(MAX_TIME)
    assert "key: 'a'" in str(raised.value)


@dataclass
class Paid:
    card: str
    amount: int
    ts: int


def test_rows_of_a_class_reach_the_functions_as_its_objects(waiting_for_jobs):
    flow, out = ef.Dataflow("typed"), []
    rows = [{"card": "a", "amount": amount, "ts": ts} for ts, amount in enumerate((1, 9))]
    keyed = flow.read(ef.from_items(rows, event_time="ts")).typed(Paid).key_by("card")
    steps = [ef.step("one", lambda row: row.amount < 5), ef.step("two", lambda row, matched: row.amount > matched["one"][0].amount)]
    keyed.pattern(steps, within="1s").write(ef.to_list(out))
    flow.run(runtime="local").wait()
    assert [(row["one"]["amount"], row["two"]["amount"]) for row in out] == [(1, 9)]


@pytest.mark.parametrize(
    "other",
    [
        up(within="2s"),
        up(skip="past_last"),
        up(ef.step("more", ef.col("n") > 1)),
        MatchPattern(("k",), make_pattern([ef.step("small", ef.col("n") < 4), ef.step("big", ef.col("n") >= 5)], "1s", "no_skip")),
    ],
)
def test_state_of_another_pattern_does_not_fit(other):
    assert not compared(up().state_description(), up().state_description()).unfit
    assert compared(up().state_description(), other.state_description()).unfit
