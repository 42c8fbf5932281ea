"""Partial matches of one key: the published cases of Flink's CEP, and random patterns against matches by their definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.operators.processing.match_pattern import MatchPattern
from evenflow.engine.patterns.pattern import make_pattern
from evenflow.engine.patterns.runs import Runs
from evenflow.testing.oracle.patterns import matches


def named(letters, **options):
    """Return a step of rows whose name begins with one of these letters."""
    return ef.step(letters, lambda row: row["name"][0].lower() in letters.split("|"), **options)


def matched(events, steps, skip="no_skip", within=1_000):
    """Return the names of the rows of each match; an event is a name, one microsecond after the one before, or a pair of both."""
    rows = [
        (event if isinstance(event, tuple) else (place, event))
        for place, event in enumerate(events.split() if isinstance(events, str) else events)
    ]
    pattern = make_pattern(steps, within / 1e6, skip)
    holds = lambda step, row, path, places: pattern.steps[step].condition({"name": rows[row][1]})  # noqa: E731
    runs = Runs(pattern, [], [], {}, holds)
    for number, (time, _) in enumerate(rows):
        runs.take(number, time)
    runs.expire(10**9)
    assert not runs.runs
    assert not runs.held
    return [" ".join(rows[row][1] for row in path) for path, _, _ in runs.found]


ANY, NEXT, LOOP = {"contiguity": "followed_by_any"}, {"contiguity": "next"}, {"times": (1, None)}


@pytest.mark.parametrize(("contiguity", "expected"), [("next", []), ("followed_by", ["a b1"]), ("followed_by_any", ["a b1", "a b2"])])
def test_contiguity_between_two_steps_is_flinks(contiguity, expected):
    assert matched("a c b1 b2", [named("a"), named("b", contiguity=contiguity)]) == expected


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [
        ("next", ["a b3 c"]),
        ("followed_by", ["a b1 b2 b3 c", "a b1 b2 c", "a b1 c", "a b2 b3 c", "a b2 c", "a b3 c"]),
        ("followed_by_any", ["a b1 b2 b3 c", "a b1 b2 c", "a b1 b3 c", "a b1 c", "a b2 b3 c", "a b2 c", "a b3 c"]),
    ],
)
def test_contiguity_within_a_repeated_step_is_flinks(repeats, expected):
    behind = NEXT if repeats == "next" else {}
    steps = [named("a"), named("b", repeats=repeats, **LOOP, **ANY), named("c", **behind)]
    assert matched("a b1 d1 b2 d2 b3 c", steps) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"repeats": "next"}, ["C A1 A2 A3 B", "C A1 A2 B", "C A1 B"]),
        ({}, ["C A1 A2 A3 A4 B", "C A1 A2 A3 B", "C A1 A2 B", "C A1 B"]),
    ],
)
def test_consecutive_rows_of_a_repeated_step_are_flinks(options, expected):
    assert matched("C D A1 A2 A3 D A4 B", [named("c"), named("a", **LOOP, **options), named("b")]) == expected


def test_combinations_of_a_repeated_step_are_flinks():
    found = matched("C D A1 A2 A3 D A4 B", [named("c"), named("a", repeats="followed_by_any", **LOOP, **ANY), named("b")])
    rows = ["A1", "A2", "A3", "A4"]
    assert sorted(found) == sorted(f"C {' '.join(row for place, row in enumerate(rows) if n >> place & 1)} B" for n in range(1, 16))


B_C = ["b1 b2 b3 c", "b2 b3 c", "b3 c"]


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ("no_skip", B_C),
        ("to_next", B_C),
        ("past_last", B_C[:1]),
        (("to_first", "b"), B_C),
        (("to_last", "b"), ["b1 b2 b3 c", "b3 c"]),
    ],
)
def test_skip_strategies_are_flinks(skip, expected):
    assert matched("b1 b2 b3 c", [named("b", repeats="next", **LOOP), named("c", **NEXT)], skip) == expected


@pytest.mark.parametrize(
    ("skip", "expected"),
    [("no_skip", ["a b c1 c2 c3 d", "b c1 c2 c3 d", "c1 c2 c3 d"]), (("to_first", "c"), ["a b c1 c2 c3 d", "c1 c2 c3 d"])],
)
def test_skip_to_the_first_row_of_a_step_is_flinks(skip, expected):
    steps = [named("a|b|c"), named("b|c", **NEXT), named("c", contiguity="next", repeats="next", **LOOP), named("d", **NEXT)]
    assert matched("a b c1 c2 c3 d", steps, skip) == expected


@pytest.mark.parametrize(("skip", "expected"), [("no_skip", ["a b1", "a b1 b2", "a b1 b2 b3"]), ("to_next", ["a b1"])])
def test_a_repeated_last_step_is_flinks(skip, expected):
    assert matched("a b1 b2 b3", [named("a"), named("b", **LOOP)], skip) == expected


@pytest.mark.parametrize(
    ("skip", "expected"),
    [("no_skip", ["a1 a2 a3", "a2 a3 a4", "a3 a4 a5", "a4 a5 a6"]), ("past_last", ["a1 a2 a3", "a4 a5 a6"])],
)
def test_a_number_of_rows_is_flinks(skip, expected):
    assert matched("a1 a2 a3 a4 a5 a6", [named("a", times=3)], skip) == expected


@pytest.mark.parametrize(
    ("which", "expected"),
    [("to_first", ["x1 x2 x3 x4", "x3 x4 x5 x6"]), ("to_last", ["x1 x2 x3 x4", "x4 x5 x6 x7"])],
)
def test_skip_to_a_step_whose_rows_could_be_of_another_is_flinks(which, expected):
    steps = [named("x", times=2), ef.step("end", lambda row: True, times=2, contiguity="next")]
    assert matched("x1 x2 x3 x4 x5 x6 x7"[: 17 if which == "to_first" else None], steps, (which, "end")) == expected


def test_earliest_of_several_matches_with_the_same_ends_is_flinks():
    steps = [named("a"), named("b", **ANY), named("c", **ANY), named("d")]
    assert matched("a1 a2 b1 b2 c1 c2 d1 d2", steps, "past_last") == ["a1 b1 c1 d1"]
    assert matched("a1 b1 a2 b2", [named("a"), named("b", **ANY)], "to_next") == ["a1 b1", "a2 b2"]


def test_absent_step_between_two_others_forbids_its_rows_there_only():
    steps = [named("a"), named("b", absent=True), named("c")]
    assert matched("b a c b", steps) == ["a c"]
    assert matched("a d b c", steps) == []
    assert matched("a1 b a2 c", steps) == ["a2 c"]


def test_absent_last_step_makes_a_match_once_the_time_is_over():
    steps = [named("a"), named("b", absent=True)]
    assert matched([(0, "a1"), (5, "a2"), (12, "b")], steps, within=10) == ["a1"]
    assert matched([(0, "a"), (10, "b")], steps, within=10) == ["a"], "the end itself is not within"
    assert matched([(0, "a"), (9, "b")], steps, within=10) == []


def test_last_row_is_less_than_within_after_the_first():
    steps = [named("a"), named("b")]
    assert matched([(0, "a"), (9, "b")], steps, within=10) == ["a b"]
    assert matched([(0, "a"), (10, "b")], steps, within=10) == []


def test_match_waits_for_an_earlier_partial_match_that_may_skip_it():
    steps = [named("a"), named("b", **ANY), named("c")]
    assert matched("a1 x b1 c", [named("a|x"), named("b"), named("c")], "past_last") == ["a1 b1 c"]
    assert matched([(0, "a1"), (1, "a2"), (2, "b1"), (3, "c")], steps, "to_next") == ["a1 b1 c", "a2 b1 c"]
    late = [named("a"), named("a|b"), named("d")]
    assert matched([(0, "a1"), (4, "a2"), (5, "b1"), (12, "d")], late, "past_last", within=10) == ["a2 b1 d"]


@st.composite
def patterns(draw):
    """Return a small pattern over rows with the columns `x` and `n`, some of whose conditions read the matched rows."""
    conditions = [
        ef.col("x") == 0,
        ef.col("x") == 1,
        ef.col("x") > 0,
        lambda row: row["x"] != 1,
        lambda row, matched: row["n"] > sum(len(rows) for rows in matched.values()),
        lambda row, matched: all(row["x"] >= rows[-1]["x"] for rows in matched.values()),
    ]
    contiguity = st.sampled_from(["next", "followed_by", "followed_by_any"])
    steps, absent = [], False
    for place in range(draw(st.integers(1, 4))):
        condition = draw(st.sampled_from(conditions))
        after, absent = absent, place > 0 and draw(st.integers(0, 3)) == 0
        if absent:
            steps.append(ef.step(f"s{place}", condition, absent=True))
            continue
        times = draw(st.sampled_from([1, 1, 2, (1, 2), (2, 3), (1, None)]))
        options = {"repeats": draw(contiguity)} if times != 1 else {}
        reached = draw(contiguity)
        options |= {"contiguity": "followed_by" if place == 0 or (after and reached == "next") else reached}
        steps.append(ef.step(f"s{place}", condition, times=times, **options))
    names = [step.name for step in steps if not step.absent]
    to_step = st.tuples(st.sampled_from(["to_first", "to_last"]), st.sampled_from(names))
    skip = draw(st.one_of(st.sampled_from(["no_skip", "to_next", "past_last"]), to_step))
    return make_pattern(steps, draw(st.integers(1, 12)) / 1e6, skip)


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=9)


def agrees(drive, pattern, rows, cut):
    """Compare the operator, whose watermark advances after some rows, with the matches by definition."""
    times, time = [], 0
    for gap, _ in rows:
        time += gap
        times.append(time)
    driven, found = drive(MatchPattern(("k",), pattern)), []
    for n, ((_, x), at) in enumerate(zip(rows, times, strict=True)):
        found += driven.process({"k": [1], "x": [x], "n": [n]}, [at])
        if n % cut == 0:
            found += driven.advance(at)
    found += driven.advance(10**9)
    expected = matches([(at, {"k": 1, "x": x, "n": n}) for n, ((_, x), at) in enumerate(zip(rows, times, strict=True))], pattern)
    names = [step.name for step in pattern.steps]
    assert sorted(_numbers(row, names) for row in found) == sorted([(names[step], n) for n, step in path] for path in expected)
    assert driven.operator.state.backend.count() == 0, "nothing is kept once all is decided"


def _numbers(match, names):
    return [
        (name, row["n"]) for name in names if name in match for row in (match[name] if isinstance(match[name], list) else [match[name]])
    ]


@settings(max_examples=12)
@given(pattern=patterns(), rows=ROWS, cut=st.integers(1, 4))
def test_matches_are_those_of_the_definition(drive, pattern, rows, cut):
    agrees(drive, pattern, rows, cut)


@pytest.mark.slow
@settings(max_examples=400)
@given(pattern=patterns(), rows=ROWS, cut=st.integers(1, 4))
def test_matches_are_those_of_the_definition_for_many_patterns(drive, pattern, rows, cut):
    agrees(drive, pattern, rows, cut)
