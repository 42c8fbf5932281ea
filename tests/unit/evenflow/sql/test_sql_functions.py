"""Expressions of SQL: their values for a row, and for a row of nulls."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

import evenflow as ef
from evenflow.engine.errors import FlowError, RecordError


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("v + 1", [8, -6]),
        ("v - 1.5", [Decimal("5.5"), Decimal("-8.5")]),
        ("-v * 2", [-14, 14]),
        ("v / 2", [3, -3]),
        ("v / -2", [-3, 3]),
        ("v / 2.0", [3.5, -3.5]),
        ("x / 2", [0.75, None]),
        ("MOD(v, 4)", [3, -3]),
        ("v % -4", [3, -3]),
        ("MOD(x, 1)", [0.5, None]),
        ("ABS(v)", [7, 7]),
        ("ROUND(x * 1.17, 1)", [1.8, None]),
        ("FLOOR(x)", [1.0, None]),
        ("CEIL(x)", [2.0, None]),
        ("SQRT(v + 9) + POWER(v, 2)", [53.0, pytest.approx(50.41421356237)]),
        ("LN(EXP(x))", [1.5, None]),
        ("1e3", [1000.0, 1000.0]),
        ("UPPER(s) || '!'", ["TEA!", None]),
        ("CONCAT(s, '-', k)", ["tea-a", None]),
        ("LOWER(UPPER(s))", ["tea", None]),
        ("CHAR_LENGTH(s)", [3, None]),
        ("TRIM('  x ')", ["x", "x"]),
        ("SUBSTRING(s, 2)", ["ea", None]),
        ("SUBSTRING(s, 1, 2)", ["te", None]),
        ("REPLACE(s, 'e', 'oo')", ["tooa", None]),
        ("REGEXP_EXTRACT(s, '(t)(.)', 2)", ["e", None]),
        ("l[2]", [2, None]),
        ("l[3]", [None, None]),
        ("SPLIT_INDEX('a/b/c', '/', 1)", ["b", "b"]),
        ("s LIKE 't%'", [True, None]),
        ("s LIKE 't_'", [False, None]),
        ("s NOT LIKE '%z%'", [True, None]),
        ("v = 7", [True, False]),
        ("v <> 7", [False, True]),
        ("v BETWEEN 7 AND 9", [True, False]),
        ("v IN (1, 7)", [True, False]),
        ("k IN ('b', NULL)", [None, None]),
        ("k NOT IN ('b')", [True, None]),
        ("k IS NULL", [False, True]),
        ("k IS NOT NULL", [True, False]),
        ("b IS TRUE", [True, False]),
        ("b AND v > 100", [False, False]),
        ("b OR v < 0", [True, True]),
        ("NOT b", [False, None]),
        ("CASE WHEN v > 0 THEN 'up' WHEN v < 0 THEN 'down' END", ["up", "down"]),
        ("CASE k WHEN 'a' THEN 1 ELSE 2 END", [1, 2]),
        ("IF(v > 0, 1, 2)", [1, 2]),
        ("COALESCE(x, 0)", [1.5, 0.0]),
        ("NULLIF(v, 7)", [None, -7]),
        ("CAST(v AS DOUBLE)", [7.0, -7.0]),
        ("CAST(v AS VARCHAR)", ["7", "-7"]),
        ("CAST(v AS DECIMAL(10, 2))", [Decimal("7.00"), Decimal("-7.00")]),
        ("CAST(ts AS DATE)", [date(2026, 1, 31), date(2026, 3, 1)]),
        ("YEAR(ts) * 100 + MONTH(ts)", [202601, 202603]),
        ("HOUR(ts)", [12, 0]),
        ("EXTRACT(MINUTE FROM ts)", [30, 0]),
        ("DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm')", ["2026-01-31 12:30", "2026-03-01 00:00"]),
        ("DATE_TRUNC('HOUR', ts)", [datetime(2026, 1, 31, 12, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)]),
        ("ts + INTERVAL '90' SECOND", [datetime(2026, 1, 31, 12, 31, 45, tzinfo=UTC), datetime(2026, 3, 1, 0, 1, 30, tzinfo=UTC)]),
        ("d.a", [1, None]),
        ("NULL", [None, None]),
        ("TRUE", [True, True]),
        ("(v)", [7, -7]),
    ],
)
def test_values_of_an_expression(values, expression, expected):
    assert values(expression) == expected


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("v / 0", "division by zero"),
        ("MOD(v, 0)", "division by zero"),
        ("v * 9223372036854775807", "overflow"),
        ("CAST(s AS BIGINT)", "tea"),
    ],
)
def test_values_that_can_not_be_computed_end_the_job_with_the_row(values, expression, problem):
    with pytest.raises(RecordError, match=f"(?s){problem}.*record: "):
        values(expression)


def count_char(text: str, char: str) -> int | None:
    return None if text is None else text.count(char)


def halves(number: int):
    return number / 2


def test_python_functions_are_called_by_name_with_null_as_none(values):
    assert values("count_char(s, 'e') + COUNT_CHAR(s, 'a')", functions={"count_char": (count_char, "int64")}) == [2, None]
    assert values("halves(v)", functions={"halves": (halves, float)}) == [3.5, -3.5]


def broken(number: int) -> int:
    raise ValueError(f"{number} is broken")


def untrue(number: int) -> int:
    return f"{number}"


@pytest.mark.parametrize(
    ("function", "problem"), [(broken, "broken raised ValueError: 7 is broken"), (untrue, "the result of untrue doesn't fit")]
)
def test_python_functions_that_fail_end_the_job_with_the_row(values, function, problem):
    with pytest.raises(RecordError, match=f"(?s){problem}.*record: "):
        values(f"{function.__name__}(v)", functions={function.__name__: function})


@pytest.mark.parametrize(
    ("functions", "problem"),
    [
        ({"upper": count_char}, "SQL has a function of this name"),
        ({"tumble": count_char}, "SQL has a function of this name"),
        ({"f": 5}, r"expected a name and a function, or \(function, type\), got 5"),
        ({"a b": count_char}, "expected a name and a function"),
        ({"f": halves}, "annotate its result"),
        ({"f": (halves, "nope")}, "type 'nope' is unknown"),
    ],
)
def test_wrong_functions_are_refused(inputs, functions, problem):
    with pytest.raises(FlowError, match=problem):
        ef.sql("SELECT v FROM t", t=inputs["t"], functions=functions)
