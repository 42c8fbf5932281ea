"""Wrong steps and patterns are refused when the flow is written, by an error that says what to do."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.errors import FlowError

A, B = ef.step("a", ef.col("n") > 0), ef.step("b", ef.col("n") > 0)
NO = ef.step("no", ef.col("n") > 0, absent=True)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: ef.step("", ef.col("n") > 0), "the name of a step is a text"),
        (lambda: ef.step("a", "n > 0"), "expected an expression or a function of"),
        (lambda: ef.step("a", lambda x, y, z: True), "it takes .* but is called with \\(row, matched\\)"),
        (lambda: ef.step("a", A.condition, times=0), "times=0, expected a number of rows from 1"),
        (lambda: ef.step("a", A.condition, times=(3, 2)), "the most is less than the least"),
        (lambda: ef.step("a", A.condition, times=(None, 2)), "expected a number of rows from 1"),
        (lambda: ef.step("a", A.condition, contiguity="strict"), "contiguity='strict', expected \"next\""),
        (lambda: ef.step("a", A.condition, repeats="next"), "repeats='next' is for the rows of a repeated step"),
        (lambda: ef.step("a", A.condition, times=2, absent=True), "an absent step has no rows"),
        (lambda: ef.step("a", A.condition, absent=1), "absent=1, expected True or False"),
    ],
)
def test_wrong_step_is_refused(make, problem):
    with pytest.raises(FlowError, match=problem):
        make()


@pytest.mark.parametrize(
    ("steps", "options", "problem"),
    [
        ([], {}, "expected a list of steps"),
        ([A, "b"], {}, "expected a list of steps"),
        ([A, A], {}, "two steps have the name 'a'"),
        ([A] * 61, {}, "61 steps; there may be 60"),
        ([NO, A], {}, "the first step, 'no', is absent"),
        ([ef.step("b", A.condition, contiguity="next")], {}, "the first step, 'b', follows no other"),
        ([A, NO, ef.step("b", A.condition, contiguity="next")], {}, "no row comes before 'b', which is \"next\""),
        ([A, B], {"within": 0}, "within is zero"),
        ([A, B], {"within": "soon"}, "is not a duration"),
        ([A, B], {"skip": "past"}, 'expected "no_skip", "to_next", "past_last"'),
        ([A, B], {"skip": ("to_last", "c")}, "no step that matches rows has that name; there are: a, b"),
        ([A, NO], {"skip": ("to_last", "no")}, "no step that matches rows has that name"),
        ([ef.step("k", A.condition)], {}, "the matches have a column 'k' already"),
        ([ef.step("match_end", A.condition)], {}, "the matches have a column 'match_end' already"),
        ([ef.step("a", ef.col("missing") > 0)], {}, "step 'a': .*missing"),
        ([ef.step("a", ef.col("n") + 1)], {}, "step 'a': .* has the type int64, expected booleans"),
    ],
)
def test_wrong_pattern_is_refused(steps, options, problem):
    keyed = ef.Dataflow("f").read(ef.from_items([{"k": "a", "n": 1, "ts": 0}], event_time="ts")).key_by("k")
    with pytest.raises(FlowError, match=problem):
        keyed.pattern(steps, **{"within": "1m", **options})


def test_pattern_over_a_stream_of_updates_is_refused():
    updates = ef.Dataflow("f").read(ef.from_items([{"k": "a"}])).key_by("k").aggregate(n=ef.count())
    with pytest.raises(FlowError, match="updates"):
        updates.key_by("k").pattern([A], within="1m")
