"""Each function of expressions on values that tell it from others, on nulls, and on columns that have held only nulls so far."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.expressions.evaluation import Evaluator
from evenflow.engine.expressions.expression import Expression, col, lit, when
from evenflow.engine.expressions.functions.registry import FUNCTIONS
from evenflow.engine.expressions.namespaces import Lists, Structs, Texts, Times
from evenflow.engine.expressions.program import Program
from evenflow.engine.expressions.trees.tree import Call

PAGE = Path(__file__).parents[4] / "docs/how-to/expressions.md"
A, B, S, T, L = col("a"), col("b"), col("s"), col("t"), col("l")
MOMENT = datetime(2026, 3, 29, 1, 59, 58, 123_456)
DAY = pa.array([date(2026, 1, 4), None])


def texts(*values):
    return {"s": pa.array(values, pa.string())}


def times(kind="us", zone=None):
    return (
        {"t": pa.array([MOMENT, None], pa.timestamp(kind, zone))}
        if kind == "us"
        else {"t": pa.array([MOMENT]).cast(pa.timestamp(kind), safe=False)}
    )


WHOLE = {"a": pa.array([7, -7, None, 7]), "b": pa.array([2, 2, 2, None])}
REAL = {"a": pa.array([7.5, -7.5, math.inf]), "b": pa.array([2.0, 2.0, 2.0])}
BOOLEANS = {"a": pa.array([True, True, True, False, False, None]), "b": pa.array([True, False, None, False, None, None])}
MONEY = {"a": pa.array([Decimal("1.25"), Decimal("-0.5")], pa.decimal128(38, 2)), "b": pa.array([Decimal(3), None], pa.decimal128(10, 1))}
NANS = {"a": pa.array([math.nan, math.nan, 1.0, None]), "b": pa.array([math.nan, 1.0, math.nan, math.nan])}
LISTS = {"l": pa.array([[1, 2], [], None, [3, None, 3]])}

CASES = {
    "add": (A + B, WHOLE, [9, -5, None, None]),
    "add of a literal first": (1 + A, WHOLE, [8, -6, None, 8]),
    "add of texts": (S + "-" + S, texts("a", None), ["a-a", None]),
    "add of decimals": (A + B, MONEY, [Decimal("4.25"), None]),
    "add of a duration": (T + timedelta(hours=1), times(), [MOMENT + timedelta(hours=1), None]),
    "add of a day and a duration": (col("d") + timedelta(days=1), {"d": DAY}, [datetime(2026, 1, 5), None]),
    "sub": (10 - A, WHOLE, [3, 17, None, 3]),
    "sub of times": (T - datetime(2026, 3, 29), times(), [timedelta(hours=1, minutes=59, seconds=58, microseconds=123_456), None]),
    "mul": (A * B, WHOLE, [14, -14, None, None]),
    "mul of decimals": (A * A, MONEY, [Decimal("1.5625"), Decimal("0.2500")]),
    "mul of a duration": (col("d") * 2, {"d": pa.array([timedelta(seconds=3)])}, [timedelta(seconds=6)]),
    "truediv": (A / B, WHOLE, [3.5, -3.5, None, None]),
    "truediv by zero of floats": (A / 0.0, REAL, [math.inf, -math.inf, math.inf]),
    "truediv of decimals": (A / 2, MONEY, [0.625, -0.25]),
    "floordiv": (A // B, WHOLE, [3, -4, None, None]),
    "floordiv of floats": (A // B, REAL, [3.0, -4.0, math.nan]),
    "mod": (A % B, WHOLE, [1, 1, None, None]),
    "truncdiv": (A.call("truncdiv", B), WHOLE, [3, -3, None, None]),
    "truncdiv of floats": (A.cast("float64").call("truncdiv", 2), WHOLE, [3.5, -3.5, None, 3.5]),
    "rem": (A.call("rem", B), WHOLE, [1, -1, None, None]),
    "mod by a negative literal": (A % -2, WHOLE, [-1, -1, None, -1]),
    "mod of the lowest number": (A % -1, {"a": pa.array([-(2**63)])}, [0]),
    "mod of a literal": (10 % A, WHOLE, [3, -4, None, 3]),
    "pow": (A**2, WHOLE, [49, 49, None, 49]),
    "pow of floats": (2.0**A, {"a": pa.array([0.5, 3.0])}, [math.sqrt(2), 8.0]),
    "neg": (-A, WHOLE, [-7, 7, None, -7]),
    "neg of decimals": (-A, MONEY, [Decimal("-1.25"), Decimal("0.50")]),
    "abs": (A.abs(), WHOLE, [7, 7, None, 7]),
    "round": (A.round(), {"a": pa.array([0.5, 1.5, -2.5, 2.6])}, [0.0, 2.0, -2.0, 3.0]),
    "round of decimals": (A.round(1), MONEY, [Decimal("1.20"), Decimal("-0.50")]),
    "round of hundreds": (A.round(-2), {"a": pa.array([149, 151])}, [100, 200]),
    "floor": (A.floor(), REAL, [7.0, -8.0, math.inf]),
    "floor of whole numbers": (A.floor(), WHOLE, [7, -7, None, 7]),
    "ceil": (A.ceil(), MONEY, [Decimal("2.00"), Decimal("0.00")]),
    "sqrt": (A.sqrt(), {"a": pa.array([9, 2])}, [3.0, math.sqrt(2)]),
    "exp": (A.exp(), {"a": pa.array([0, 1])}, [1.0, math.e]),
    "log": (A.log(), {"a": pa.array([1.0, 0.0])}, [0.0, -math.inf]),
    "lt": (A < B, NANS, [False, False, True, None]),
    "le": (A <= B, NANS, [True, False, True, None]),
    "gt": (A > B, NANS, [False, True, False, None]),
    "ge": (A >= B, NANS, [True, True, False, None]),
    "eq": (A == B, NANS, [True, False, False, None]),
    "ne": (A != B, NANS, [False, True, True, None]),
    "gt of a literal": (A > 2, NANS, [True, True, False, None]),
    "lt of a literal first": (lit(2.0) < A, NANS, [True, True, False, None]),
    "lt of a whole number and a float": (A < 1e6, {"a": pa.array([999_999, 1_000_000, None])}, [True, False, None]),
    "eq of a large whole number": (A == 2**53 + 1, {"a": pa.array([2**53, 2**53 + 1])}, [False, True]),
    "lt of a number without a sign": (A < B, {"a": pa.array([2**64 - 1, 1], pa.uint64()), "b": pa.array([-1, 2])}, [False, True]),
    "eq of decimals of other scales": (
        A == B, {"a": pa.array([Decimal(2)], pa.decimal128(38, 0)), "b": pa.array([Decimal(2)], pa.decimal128(38, 10))}, [True],
    ),
    "eq of times of two zones": (
        A == B, {"a": pa.array([MOMENT], pa.timestamp("us", "UTC")), "b": pa.array([MOMENT], pa.timestamp("us", "Asia/Tokyo"))}, [True],
    ),
    "eq of a day": (col("d") == date(2026, 1, 4), {"d": DAY}, [True, None]),
    "and": (A & B, BOOLEANS, [True, False, None, False, False, None]),
    "or": (A | B, BOOLEANS, [True, True, True, False, None, None]),
    "not": (~B, BOOLEANS, [False, True, None, True, None, None]),
    "is_null": (A.is_null(), WHOLE, [False, False, True, False]),
    "is_not_null": (A.is_not_null(), WHOLE, [True, True, False, True]),
    "fill_null": (A.fill_null(0), WHOLE, [7, -7, 0, 7]),
    "fill_null by a column": (A.fill_null(B), WHOLE, [7, -7, 2, 7]),
    "fill_null of whole numbers by a float": (A.fill_null(0.5), WHOLE, [7.0, -7.0, 0.5, 7.0]),
    "is_nan": (A.is_nan(), NANS, [True, True, False, None]),
    "is_in": (A.is_in([7, 1]), WHOLE, [True, False, None, True]),
    "is_in with a null": (A.is_in([7, None]), WHOLE, [True, None, None, True]),
    "is_in of nothing": (A.is_in([]), WHOLE, [False, False, None, False]),
    "is_in of floats": (A.is_in([math.nan, 2]), NANS, [True, True, False, None]),
    "is_in of days": (col("d").is_in([date(2026, 1, 4)]), {"d": DAY}, [True, None]),
    "between": (A.between(-7, 6), WHOLE, [False, True, None, False]),
    "case": (when(A > 0).then("up").when(A < 0).then("down"), WHOLE, ["up", "down", None, "up"]),
    "case of numbers": (when(A > 0).then(A).otherwise(0.5), WHOLE, [7.0, 0.5, 0.5, 7.0]),
    "case that guards": (
        when(B != 0).then(A // B).when(A > 1).then(A // (A - 2)).otherwise(-1), {"a": pa.array([1, 9, 3]), "b": pa.array([0, 3, 0])},
        [-1, 3, 3],
    ),
    "cast": (A.cast("string"), WHOLE, ["7", "-7", None, "7"]),
    "cast to a decimal": (A.cast("decimal128(5, 2)"), WHOLE, [Decimal("7.00"), Decimal("-7.00"), None, Decimal("7.00")]),
    "str.upper": (S.str.upper(), texts("straße", "ab", None), ["STRASSE", "AB", None]),
    "str.lower": (S.str.lower(), texts("ÄB", None), ["äb", None]),
    "str.len_chars": (S.str.len_chars(), texts("日本", None), [2, None]),
    "str.len_bytes": (S.str.len_bytes(), texts("日本", None), [6, None]),
    "str.contains": (S.str.contains("a.c"), texts("xabc", "ac", None), [True, False, None]),
    "str.contains literally": (S.str.contains("a.c", literal=True), texts("abc", "a.c"), [False, True]),
    "str.starts_with": (S.str.starts_with("日"), texts("日本", "本"), [True, False]),
    "str.ends_with": (S.str.ends_with("本"), texts("日本", "日"), [True, False]),
    "str.count_matches": (S.str.count_matches("a+"), texts("aaba", "b", None), [2, 0, None]),
    "str.find": (S.str.find("[本c]"), texts("日本", "abc", "x", None), [1, 2, None, None]),
    "str.replace": (S.str.replace("(a)", r"<\1>"), texts("aa", None), ["<a>a", None]),
    "str.replace_all": (S.str.replace_all(".", "-", literal=True), texts("a.b.", None), ["a-b-", None]),
    "str.extract": (S.str.extract(r"[(](x|y)=(\d+)", 2), texts("(y=12", "x=1", None), ["12", None, None]),
    "str.extract of the match": (S.str.extract(r"(?P<n>\d)\d*", 0), texts("a12", None), ["12", None]),
    "str.slice": (S.str.slice(1, 2), texts("日本語x", None), ["本語", None]),
    "str.slice from the end": (S.str.slice(-2), texts("日本語", "語"), ["本語", "語"]),
    "str.strip_chars": (S.str.strip_chars(), texts(" a \n", None), ["a", None]),
    "str.strip_chars_start": (S.str.strip_chars_start("x"), texts("xxax"), ["ax"]),
    "str.strip_chars_end": (S.str.strip_chars_end("x"), texts("xxax"), ["xxa"]),
    "str.split": (S.str.split(","), texts("a,b", "", None), [["a", "b"], [""], None]),
    "str.to_datetime": (S.str.to_datetime("%Y-%m-%d"), texts("2026-01-31", None), [datetime(2026, 1, 31), None]),
    "dt.year": (T.dt.year(), times(), [2026, None]),
    "dt.quarter": (T.dt.quarter(), times(), [1, None]),
    "dt.month": (T.dt.month(), times(), [3, None]),
    "dt.week": (col("d").dt.week(), {"d": DAY}, [1, None]),
    "dt.weekday": (col("d").dt.weekday(), {"d": DAY}, [7, None]),
    "dt.day": (T.dt.day(), times(zone="Pacific/Auckland"), [29, None]),
    "dt.ordinal_day": (T.dt.ordinal_day(), times(), [88, None]),
    "dt.hour": (T.dt.hour(), times(zone="Asia/Tokyo"), [10, None]),
    "dt.hour in UTC": (T.dt.hour(), times(zone="UTC"), [1, None]),
    "dt.hour of a clock": (T.dt.hour(), {"t": pa.array([time(5, 6)])}, [5]),
    "dt.minute": (T.dt.minute(), times(), [59, None]),
    "dt.second": (T.dt.second(), times(), [58, None]),
    "dt.microsecond": (T.dt.microsecond(), times(), [123_456, None]),
    "dt.date": (T.dt.date(), times(zone="Asia/Tokyo"), [date(2026, 3, 29), None]),
    "dt.date in a zone behind": (T.dt.date(), times(zone="America/New_York"), [date(2026, 3, 28), None]),
    "dt.truncate": (T.dt.truncate("15m"), times(), [datetime(2026, 3, 29, 1, 45), None]),
    "dt.truncate of a day": (col("d").dt.truncate("1w"), {"d": DAY}, [date(2025, 12, 29), None]),
    "dt.truncate in UTC": (T.dt.truncate("1d"), times(zone="UTC"), [datetime(2026, 3, 29, tzinfo=UTC), None]),
    "str.split_part": (S.call("str.split_part", "/", 1), texts("a/b/c", "a", None), ["b", None, None]),
    "dt.strftime": (T.dt.strftime("%Y-%m-%d %H:%M:%S"), times(), ["2026-03-29 01:59:58", None]),
    "dt.strftime in UTC": (T.dt.strftime("%H:%M:%S %Z"), times(zone="UTC"), ["01:59:58 UTC", None]),
    "dt.strftime in a zone": (T.dt.strftime("%H:%M"), times(zone="Asia/Tokyo"), ["10:59", None]),
    "dt.epoch": (T.dt.epoch("ms"), times(), [1_774_749_598_123, None]),
    "dt.epoch before 1970": (T.dt.epoch("s"), {"t": pa.array([datetime(1969, 12, 31, 23, 59, 59, 1)])}, [-1]),
    "dt.epoch of a day": (col("d").dt.epoch("s"), {"d": DAY}, [1_767_484_800, None]),
    "dt.total_seconds": (col("d").dt.total_seconds(), {"d": pa.array([timedelta(milliseconds=1_500)])}, [1.5]),
    "list.len": (L.list.len(), LISTS, [2, 0, None, 3]),
    "list.get": (L.list.get(1), LISTS, [2, None, None, None]),
    "list.get from the end": (L.list.get(-1), LISTS, [2, None, None, 3]),
    "list.contains": (L.list.contains(3), LISTS, [False, False, None, True]),
    "list.join": (L.list.join("+"), {"l": pa.array([["a", "b"], [], None])}, ["a+b", "", None]),
    "struct.field": (col("r").struct.field("x"), {"r": pa.array([{"x": 1}, None])}, [1, None]),
}  # fmt: skip


def evaluated(expression, columns):
    batch = Batch(pa.record_batch(columns))
    (values,) = Evaluator([expression.tree], "step").values(batch)
    assert values.type == Program([expression.tree], batch.rows.schema).types[0]
    return values.to_pylist()


def alike(found, expected):
    if isinstance(expected, float):
        return type(found) is float and (math.isclose(found, expected) or (math.isnan(found) and math.isnan(expected)))
    return found == expected and type(found) is type(expected)


@pytest.mark.parametrize("name", CASES)
def test_function_gives_what_a_user_expects(name):
    expression, columns, expected = CASES[name]
    found = evaluated(expression, columns)
    assert len(found) == len(expected)
    assert all(map(alike, found, expected)), found
    sliced = evaluated(expression, {key: pa.concat_arrays([column, column]).slice(1, len(column)) for key, column in columns.items()})
    assert all(map(alike, sliced, [*expected[1:], *expected[:1]])), sliced
    encoded = {key: column.dictionary_encode() if pa.types.is_string(column.type) else column for key, column in columns.items()}
    assert all(map(alike, evaluated(expression, encoded), expected))


@pytest.mark.parametrize("name", CASES)
def test_function_of_columns_without_a_type_yet_has_the_values_of_nulls(name):
    expression, columns, _ = CASES[name]
    typed = {key: pa.nulls(2, column.type) for key, column in columns.items()}
    assert evaluated(expression, {key: pa.nulls(2) for key in columns}) == evaluated(expression, typed)


def test_each_function_has_a_case():
    called = set()

    def visit(tree):
        if isinstance(tree, Call):
            called.add(tree.name)
            for argument in tree.arguments:
                visit(argument)

    for expression, _, _ in CASES.values():
        visit(expression.tree)
    assert called == set(FUNCTIONS)


def test_page_lists_each_function_and_no_other():
    shown = set(
        re.findall(r"`?\.((?:str|dt|list|struct)\.\w+|\w+)\(", PAGE.read_text().partition("## Functions")[2].partition("## Null")[0])
    )
    spaces = {"str": Texts, "dt": Times, "list": Lists, "struct": Structs}
    methods = {f"{space}.{name}" for space, kind in spaces.items() for name in vars(kind) if not name.startswith("_")}
    methods |= {name for name in vars(Expression) if not name.startswith("_")} - {"call", "tree", *spaces}
    assert shown - {"col", "lit", "when", "then", "otherwise"} == methods


def test_text_of_an_expression_is_that_which_a_user_writes():
    expression = when((A + 1) * 2 > B).then(S.str.slice(0, 2)).otherwise(None)
    assert repr(expression) == "when(((a + 1) * 2) > b).then(s.str.slice(0, 2)).otherwise(None)"
    assert (
        repr(~(col("a b") == Decimal("1.0")) | A.cast("int32").is_in([1]))
        == "(~(col(\"a b\") == Decimal('1.0'))) | a.cast('int32').is_in([1])"
    )


REFUSED = {
    "overflow": ((A + 1), {"a": [1, 2**63 - 1]}, "a + 1 fails: the result overflows its type", {"a": 2**63 - 1}),
    "overflow of a narrow type": (A * A, {"a": pa.array([2, 20], pa.int8())}, "a * a fails: the result overflows", {"a": 20}),
    "overflow of the lowest": (A // -1, {"a": [1, -(2**63)]}, "a // (-1) fails: the result overflows", {"a": -(2**63)}),
    "negative of the lowest": (-A, {"a": [-(2**63)]}, "-a fails: the result overflows", {"a": -(2**63)}),
    "division by zero": (A // B, {"a": [1, 1], "b": [1, 0]}, "a // b fails: division by zero", {"a": 1, "b": 0}),
    "remainder of zero": (A % B, {"a": [1, 1], "b": [1, 0]}, "a % b fails: division by zero", {"a": 1, "b": 0}),
    "quotient of zero": (A / B, {"a": [1, 1], "b": [1, 0]}, "a / b fails: division by zero", {"a": 1, "b": 0}),
    "39 digits": (
        A * B, {"a": pa.array([Decimal(10) ** 37], pa.decimal128(38, 0)), "b": pa.array([Decimal(10)], pa.decimal128(38, 0))},
        "a * b fails: Decimal value does not fit in precision 38", {"a": Decimal(10) ** 37, "b": Decimal(10)},
    ),
    "cast of a text": (S.cast("int64"), {"s": ["1", "x"]}, "s.cast('int64') fails: Failed to parse string: 'x'", {"s": "x"}),
    "cast of a fraction": (A.cast("int64"), {"a": [1.0, 1.5]}, "a.cast('int64') fails: Float value 1.500000 was truncated", {"a": 1.5}),
    "time of a text": (S.str.to_datetime("%Y"), {"s": ["2026", "x"]}, "fails: Failed to parse string: 'x'", {"s": "x"}),
    "time that Python has none for": (
        T + timedelta(days=1), {"t": pa.array([0, 2**63 - 1], pa.timestamp("us"))}, "fails: the result overflows",
        {"t": "9223372036854775807 as timestamp[us]"},
    ),
    "value of a choice that is taken": (when(B < 9).then(A // B), {"a": [1, 1], "b": [9, 0]}, "division by zero", {"a": 1, "b": 0}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_value_that_cannot_be_computed_is_named_with_expression_and_row(name):
    expression, columns, said, record = REFUSED[name]
    with pytest.raises(RecordError) as caught:
        Evaluator([A.is_null().tree if "a" in columns else lit(1).tree, expression.tree], "step").values(Batch(pa.record_batch(columns)))
    assert str(caught.value).startswith("operator `step`: ")
    assert said in str(caught.value)
    assert caught.value.record == record


def test_products_of_decimals_with_38_digits_are_exact_if_they_fit():
    wide = pa.array([Decimal(10) ** 36, Decimal(-3)], pa.decimal128(38, 0))
    assert evaluated(A * B, {"a": wide, "b": pa.array([Decimal(9), Decimal(7)], pa.decimal128(38, 0))}) == [
        9 * Decimal(10) ** 36,
        Decimal(-21),
    ]
    cents = pa.array([Decimal("0.01"), None], pa.decimal128(38, 2))
    assert evaluated(A + A + 1, {"a": cents}) == [Decimal("1.02"), None]
    assert evaluated(A * 2, {"a": cents}) == [Decimal("0.02"), None]


def test_literal_that_a_number_without_a_sign_holds_keeps_its_type():
    found = evaluated(A + 1, {"a": pa.array([2**64 - 2], pa.uint64())})
    assert found == [2**64 - 1]


def test_views_and_dictionaries_are_read_as_plain_columns():
    columns = {"s": pa.array(["a", None], pa.string_view()), "n": pa.array([5, 5]).dictionary_encode()}
    assert evaluated(S.str.upper() + "x", columns) == ["Ax", None]
    assert evaluated(col("n") * 2, columns) == [10, 10]


REPEATED = {
    "day": T.dt.strftime("%Y-%m-%d"),
    "hour": T.dt.strftime("%d %H %p"),
    "minute": T.dt.strftime("%H:%M"),
    "second": T.dt.strftime("%H:%M:%S"),
    "percent sign": T.dt.strftime("%%S %Y"),
    "pattern": S.str.extract(r"(\d+)", 1),
    "part": S.call("str.split_part", "-", -1),
}


@pytest.mark.parametrize("distinct", [3, 800])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu"])
@pytest.mark.parametrize("name", REPEATED)
def test_texts_and_times_that_repeat_have_the_values_that_each_row_has_alone(name, zone, distinct):
    moments = [None, *(MOMENT + timedelta(seconds=5_003 * number) for number in range(distinct))]
    chosen = [moments[place % len(moments)] for place in range(900)]
    columns = {
        "t": pa.array(chosen, pa.timestamp("us", zone)),
        "s": pa.array([None if moment is None else f"a-{moment.second}" for moment in chosen]),
    }
    rows = pa.record_batch(columns)
    program = Program([REPEATED[name].tree, (REPEATED[name] + "x").tree], rows.schema)
    whole = [values.to_pylist() for values in program.run(rows)]
    alone = [[values.to_pylist()[0] for values in program.run(rows.slice(place, 1))] for place in range(0, 900, 7)]
    assert [[values[place] for values in whole] for place in range(0, 900, 7)] == alone


def test_parts_of_one_text_split_it_once() -> None:
    parts = [S.call("str.split_part", by, at).tree for by, at in (("/", 0), ("/", 1), ("-", 0))]
    for rows in (["a/b-c", "d", None], ["a/b-c", "d", None] * 100):
        batch = pa.record_batch({"s": rows})
        program = Program(parts, batch.schema)
        assert len(program.steps) == len(["repeated", "by /", "by -", *parts])
        found = [values.to_pylist()[:3] for values in program.run(batch)]
        assert found == [["a", "d", None], ["b-c", None, None], ["a/b", "d", None]]
