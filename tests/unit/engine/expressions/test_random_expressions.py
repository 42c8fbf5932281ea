"""Random expressions over random rows equal plain Python, row by row, however the rows are cut into batches."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.expressions.evaluation import Evaluator
from evenflow.engine.expressions.expression import col, lit, when
from evenflow.engine.expressions.program import Program
from evenflow.engine.expressions.trees.problems import BindingError
from evenflow.testing.oracle.expressions import NoValueError, value_of

MOMENTS = [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2026, 10, 25, 1, 30), datetime(1600, 2, 29), datetime(2400, 7, 1, 12)]
WHOLE = [0, 1, -1, 2, -7, 10, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.5, -2.5, 1e300, -1e-300, math.nan, math.inf, -math.inf, 2.0**53]
MONEY = [Decimal("0.00"), Decimal("1.25"), Decimal("-3.50"), Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99")]
TEXTS = ["", "a", "Straße", "naïve ab", "ﬁn", "abc abc", "日本語"]

SCHEMA = pa.schema({
    "i": pa.int64(), "j": pa.int64(), "x": pa.float64(), "y": pa.float64(), "d": pa.decimal128(38, 2), "e": pa.decimal128(20, 1),
    "s": pa.string(), "t": pa.string(), "p": pa.bool_(), "q": pa.bool_(), "m": pa.timestamp("us"), "u": pa.timestamp("us", "UTC"),
    "place": pa.int64(),
})  # fmt: skip
VALUES = {
    "i": WHOLE, "j": WHOLE, "x": FLOATS, "y": FLOATS, "d": MONEY, "e": [Decimal("0.0"), Decimal("2.5"), Decimal("-" + "9" * 19 + ".9")],
    "s": TEXTS, "t": TEXTS, "p": [True, False], "q": [True, False], "m": MOMENTS, "u": [moment.replace(tzinfo=UTC) for moment in MOMENTS],
}  # fmt: skip
ROWS = st.lists(st.fixed_dictionaries({name: st.sampled_from([None, *values]) for name, values in VALUES.items()}), min_size=1, max_size=8)


def columns(*names):
    return st.sampled_from([col(name) for name in names])


def calls(operand, other, *functions):
    return st.tuples(st.sampled_from(functions), operand, other).map(lambda drawn: drawn[0](drawn[1], drawn[2]))


def pairs(strategy):
    return st.tuples(strategy, strategy)


ARITHMETIC = (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b)
COMPARISONS = (
    lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b, lambda a, b: a == b, lambda a, b: a != b,
)  # fmt: skip


def chosen(conditions, values):
    return st.tuples(conditions, values, conditions, values, values).map(
        lambda drawn: when(drawn[0]).then(drawn[1]).when(drawn[2]).then(drawn[3]).otherwise(drawn[4])
    )


def expressions(depth):
    """Return strategies of whole, float, decimal, text, truth and time expressions."""
    whole, real, money = columns("i", "j"), columns("x", "y"), columns("d", "e")
    text, truth, time = columns("s", "t"), columns("p", "q"), columns("m")
    for _ in range(depth):
        whole_or_literal, real_or_literal = whole | st.sampled_from(WHOLE), real | st.sampled_from(FLOATS)
        numbers = whole | real | money
        comparable = st.one_of(calls(numbers, numbers, *COMPARISONS), calls(real, st.sampled_from(FLOATS), *COMPARISONS))
        text_next = st.one_of(
            text,
            calls(text, text | st.sampled_from(TEXTS), lambda a, b: a + b),
            st.tuples(text, st.integers(-4, 4), st.none() | st.integers(0, 4)).map(lambda drawn: drawn[0].str.slice(drawn[1], drawn[2])),
            text.map(lambda a: a.str.upper()),
            text.map(lambda a: a.str.lower()),
            text.map(lambda a: a.str.replace_all("a", "bb", literal=True)),
            chosen(truth, text),
        )
        truth_next = st.one_of(
            comparable,
            calls(text, text | st.sampled_from(TEXTS), *COMPARISONS),
            calls(time, time | st.sampled_from(MOMENTS), *COMPARISONS),
            calls(truth, truth, lambda a, b: a & b, lambda a, b: a | b),
            truth.map(lambda a: ~a),
            numbers.map(lambda a: a.is_null()),
            real.map(lambda a: a.is_nan()),
            st.tuples(whole, st.lists(st.sampled_from([None, *WHOLE]))).map(lambda drawn: drawn[0].is_in(drawn[1])),
            st.tuples(real, st.lists(st.sampled_from([None, *FLOATS]))).map(lambda drawn: drawn[0].is_in(drawn[1])),
            st.tuples(text, st.lists(st.sampled_from([None, *TEXTS]))).map(lambda drawn: drawn[0].is_in(drawn[1])),
            st.tuples(whole, pairs(st.sampled_from(WHOLE))).map(lambda drawn: drawn[0].between(*drawn[1])),
            calls(text, st.sampled_from(["a", "ß", "本"]), lambda a, b: a.str.contains(b, literal=True), lambda a, b: a.str.starts_with(b)),
        )
        whole, real, money, text, truth, time = (
            st.one_of(
                whole,
                calls(whole, whole_or_literal, *ARITHMETIC, lambda a, b: a // b, lambda a, b: a % b, lambda a, b: a.fill_null(b)),
                whole.map(lambda a: -a),
                whole.map(lambda a: a.abs()),
                text.map(lambda a: a.str.len_chars()),
                text.map(lambda a: a.str.find("本", literal=True)),
                calls(time | columns("u"), st.none(), lambda a, _: a.dt.hour(), lambda a, _: a.dt.weekday(), lambda a, _: a.dt.epoch()),
                chosen(truth, whole),
            ),
            st.one_of(
                real,
                calls(whole | real, real_or_literal, *ARITHMETIC, lambda a, b: a / b, lambda a, b: a % b, lambda a, b: a // b),
                calls(whole, whole_or_literal, lambda a, b: a / b),
                real.map(lambda a: a.fill_null(0.5)),
                money.map(lambda a: a.cast("float64")),
                chosen(truth, real),
            ),
            st.one_of(
                money,
                calls(money, money | whole | st.sampled_from(MONEY), *ARITHMETIC),
                money.map(lambda a: -a),
                chosen(truth, money),
            ),
            text_next,
            truth_next,
            st.one_of(
                time,
                st.tuples(time, st.sampled_from(["1h", "7m", "1d", "1mo", "1y"])).map(lambda drawn: drawn[0].dt.truncate(drawn[1])),
                chosen(truth, time),
            ),
        )
    return st.one_of(whole, real, money, text, truth, time)


def same(found, expected):
    if isinstance(expected, float) and isinstance(found, float):
        return found == expected or (math.isnan(found) and math.isnan(expected))
    return found == expected and type(found) is type(expected)


def check(expression, rows, cut):
    rows = [{**row, "place": place} for place, row in enumerate(rows)]
    batch = Batch(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    try:
        Program([expression.tree], SCHEMA)
    except BindingError:  # decimals of more digits than there are, or a part without columns that fails
        assume(False)
    expected, refused = [], None
    for row in batch.rows.to_pylist():
        try:
            expected.append(value_of(expression.tree, row))
        except NoValueError:
            refused = row["place"]
            break
    evaluator = Evaluator([expression.tree], "step")
    if refused is not None:
        with pytest.raises(RecordError) as caught:
            evaluator.values(batch)
        assert caught.value.record["place"] == refused
        return
    for pieces in ([batch], [batch.slice(0, cut), batch.slice(cut, len(rows) - cut)]):
        found = [value for piece in pieces for value in evaluator.values(piece)[0].to_pylist()]
        wrong = [(row, got, want) for row, got, want in zip(rows, found, expected, strict=True) if not same(got, want)]
        assert not wrong, repr(expression)


@settings(max_examples=8)
@given(expressions(2), ROWS, st.integers(0, 8))
def test_expression_equals_plain_python_in_batches_cut_anywhere(expression, rows, cut):
    check(expression, rows, min(cut, len(rows)))


@pytest.mark.slow
@settings(max_examples=400)
@given(expressions(3), ROWS, st.integers(0, 8))
def test_deep_expression_equals_plain_python_in_batches_cut_anywhere(expression, rows, cut):
    check(expression, rows, min(cut, len(rows)))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("every", ["5m", "1h", "6h", "1d", "1w", "1mo"])
def test_truncated_time_is_on_the_clocks_of_its_zone_also_when_they_change(zone, every):
    nights = (datetime(2021, 3, 28, tzinfo=UTC), datetime(2021, 10, 31, tzinfo=UTC))
    instants = [night + timedelta(minutes=15 * step) for night in nights for step in range(96)]
    batch = Batch(pa.record_batch({"t": pa.array(instants, pa.timestamp("us", zone))}))
    (truncated,) = Evaluator([col("t").dt.truncate(every).tree], "step").values(batch)
    found = truncated.to_pylist()
    in_utc = [time.astimezone(UTC) for time in found]
    assert in_utc == sorted(in_utc)
    assert all(time <= instant for time, instant in zip(in_utc, instants, strict=True))
    if every in ("5m", "1h"):
        assert all(instant - time < timedelta(hours=1) for time, instant in zip(in_utc, instants, strict=True))
    else:
        assert {(time.hour % 6, time.minute) for time in found} == {(0, 0)}
    if every not in ("5m", "1h", "6h"):
        assert {time.hour for time in found} == {0}


def test_literal_alone_is_a_value_for_each_row():
    batch = Batch(pa.record_batch({"a": [1, 2]}))
    assert [values.to_pylist() for values in Evaluator([lit("x").tree, (lit(1) + 2).tree], "step").values(batch)] == [["x", "x"], [3, 3]]
