"""Expressions that are written wrongly, or don't fit the columns of their stream: refused when the flow is written, with what to write."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import evenflow as ef

A, S = ef.col("price"), ef.col("name")
ROWS = [{"price": 1, "name": "a", "at": 0, "tags": ["x"], "who": {"age": 1}}]


def rows():
    return ef.Dataflow("wrong").read(ef.from_items(ROWS, event_time="at"))


WRONG = {
    "a column that isn't there": (
        lambda: rows().filter(ef.col("prise") > 1),
        "operator `filter`: no column `prise`; did you mean `price`?",
    ),
    "a column far from all": (lambda: rows().with_columns(x=ef.col("zzz")), "no column `zzz`; there are: price, name, at, tags, who"),
    "types that don't fit": (
        lambda: rows().with_columns(x=A + S),
        "operator `with_columns`: + can't combine int64 and string, in price + name",
    ),
    "texts and numbers": (lambda: rows().filter(S > 5), "operator `filter`: > can't compare string and int64, in name > 5"),
    "no condition": (lambda: rows().filter(A + 1), "operator `filter`: price + 1 has the type int64, expected booleans"),
    "no condition of a branch": (lambda: rows().branch(A), "operator `branch`: price has the type int64, expected booleans"),
    "and of numbers": (lambda: rows().filter(A & True), "& works on booleans, got int64"),
    "a condition of an aggregate": (
        lambda: rows().key_by("name").aggregate(n=ef.count(where=ef.col("prise") > 1)), "operator `aggregate`: n: where= no column `prise`",
    ),
    "a condition of text and a number": (
        lambda: rows().key_by("name").aggregate(n=ef.count(where=S > 1)),
        "n: where= > can't compare string",
    ),
    "a condition that is a number": (lambda: rows().key_by("name").aggregate(n=ef.count(where=A)), "where= price has the type int64"),
    "an aggregate of types that don't fit": (
        lambda: rows().window(ef.tumbling("1h")).aggregate(n=ef.sum(A + S)), "operator `aggregate`: n: + can't combine int64 and string",
    ),
    "an aggregate of a column that isn't there": (
        lambda: rows().key_by("name").window(ef.rows(3)).aggregate(n=ef.sum(ef.col("qty") * 2)), "n: no column `qty`; there are",
    ),
    "an aggregate in sessions": (lambda: rows().window(ef.session("1h")).aggregate(n=ef.sum(ef.col("qty") * 2)), "n: no column `qty`"),
    "an expression of Arrow's": (
        lambda: rows().filter(pc.field("price") > 1),
        'write ef.col("price") > 5 in place of pc.field("price") > 5',
    ),
    "a condition of Arrow's": (lambda: ef.count(where=pc.field("price") > 1), 'write ef.col("price") > 5 in place of pc.field'),
    "a column of Arrow's": (lambda: rows().with_columns(x=pc.field("price")), 'write ef.col("price") > 5 in place of pc.field'),
    "a name for a column": (lambda: rows().with_columns(x="price"), "write ef.col('price') for a column, ef.lit('price') for a value"),
    "nothing to compute": (lambda: rows().with_columns(), "with_columns(): give at least one column"),
    "an expression without a name": (lambda: rows().select(A + 1), "give a computed column a name, for example select(total=price + 1)"),
    "a name twice": (lambda: rows().select("price", price=A + 1), "select: two columns would have the name `price`"),
    "a selected column that isn't there": (
        lambda: rows().select("prise", x=A),
        "operator `select`: no column `prise`; did you mean `price`?",
    ),
    "a key that is replaced": (
        lambda: rows().key_by("name").with_columns(name=A),
        "`name` is a key column of the stream: choose another name",
    ),
    "a key that is lost": (lambda: rows().key_by("name").select("price", x=A), "the stream is keyed by name, and name would be gone"),
    "and in place of &": (lambda: (A > 1) and (A < 5), "use & | ~ in place of and, or, not"),
    "a chain of comparisons": (lambda: 1 < A < 5, "between(a, b) in place of a < x < b"),
    "in": (lambda: [*A], "can't be iterated"),
    "when without then": (lambda: rows().with_columns(x=A + ef.when(A > 1)), "when(...) has no value yet: call .then(value)"),
    "values of two types": (lambda: rows().with_columns(x=ef.when(A > 1).then(A).otherwise("no")), "when can't combine int64 and string"),
    "a value that is no value": (lambda: A + object(), "is no value of a column"),
    "a number that is too large": (lambda: A > 2**64, "18446744073709551616 (int) is no value of a column"),
    "no name of a column": (lambda: ef.col(5), "col(5): expected the name of a column"),
    "a text of options": (lambda: A.is_in("ab"), "is_in('ab'): expected a list of values"),
    "options of another type": (lambda: rows().filter(A.is_in(["x"])), "== can't compare int64 and string"),
    "a type that isn't there": (lambda: A.cast("integer"), "cast('integer'): type 'integer' is unknown"),
    "a cast that isn't possible": (lambda: rows().with_columns(x=ef.col("tags").cast("int64")), "Unsupported cast from list"),
    "an overflow of literals": (lambda: rows().with_columns(x=A + (ef.lit(2**63 - 1) + 1)), "the result overflows its type"),
    "a zero of literals": (lambda: rows().with_columns(x=ef.lit(1) // 0), "division by zero, in 1 // 0"),
    "digits that no decimal has": (
        lambda: rows().with_columns(x=(ef.lit(Decimal("1E-30")) * Decimal("1E-30")) * A), "needs 61 digits, more than 38",
    ),
    "a function of texts on a number": (lambda: rows().with_columns(x=A.str.upper()), "str.upper works on texts, got int64"),
    "a function of times on a number": (lambda: rows().with_columns(x=A.dt.hour()), "dt.hour works on timestamps and times, got int64"),
    "a step of nothing": (lambda: A.dt.truncate("0h"), "dt.truncate('0h'): expected a step of time, for example \"500ms\""),
    "a regular expression": (lambda: rows().filter(S.str.contains("(")), "Invalid regular expression: missing )"),
    "a group that isn't there": (lambda: rows().with_columns(x=S.str.extract("(a)", 2)), "the pattern '(a)' has no group 2"),
    "a field that isn't there": (
        lambda: rows().with_columns(x=ef.col("who").struct.field("aje")), "there is no field `aje`; there are: age",
    ),
    "an index that is no number": (lambda: ef.col("tags").list.get("0"), "list.get(index='0'): expected a whole number"),
    "times with and without a zone": (
        lambda: rows().filter(ef.col("at").cast("timestamp[us]") > ef.col("at").cast(pa.timestamp("us", "UTC"))), "one has a time zone",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_expression_is_refused_with_what_to_write(refused, name):
    program, said = WRONG[name]
    error = refused(program)
    assert isinstance(error, ef.FlowError)
    assert said in str(error)


def test_expression_over_unknown_columns_is_refused_at_the_first_batch_with_the_closest_name(ended):
    error = str(ended(lambda s: s.map(lambda row: row).filter(ef.col("prise") > 1), ROWS, event_time="at"))
    assert "operator `filter`: no column `prise`; did you mean `price`? There are: price, name" in error


def test_expression_that_does_not_fit_a_file_is_refused_before_the_job_runs(refused, tmp_path):
    (tmp_path / "a.csv").write_text("price,name\n1,a\n")
    flow = ef.Dataflow("late")
    flow.read(ef.read_csv(tmp_path / "a.csv")).key_by("name").aggregate(n=ef.sum(ef.col("prise") * 2)).write(ef.to_list([]))
    assert "operator `aggregate`: n: no column `prise`; did you mean `price`?" in str(
        refused(lambda: flow.run(runtime="local").wait("60s"))
    )


def test_computed_columns_are_known_with_their_types():
    stream = rows().with_columns(half=A / 2, tags=ef.col("tags").list.len()).select("price", "half", n=ef.col("tags") + 1)
    assert stream.node.columns.schema() == pa.schema({"price": pa.int64(), "half": pa.float64(), "n": pa.int64()})


def test_plan_shows_expressions():
    flow = ef.Dataflow("shown")
    stream = flow.read(ef.from_items(ROWS)).with_columns(total=A * 2).filter(ef.col("total").between(1, 5)).select("name", x=-A)
    stream.write(ef.to_list([]))
    shown = flow.explain()
    for part in ("total=price * 2", "(total >= 1) & (total <= 5)", "name, x=-price"):
        assert part in shown
