"""Operators without state: their input and output, and the errors for a user's mistakes."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evenflow.engine.errors import RecordError
from evenflow.engine.expressions.expression import col
from evenflow.engine.operators.rows.cast import Cast
from evenflow.engine.operators.rows.filter import Filter
from evenflow.engine.operators.rows.flat_map import FlatMap
from evenflow.engine.operators.rows.key_by import KeyBy
from evenflow.engine.operators.rows.map import Map
from evenflow.engine.operators.rows.map_batches import MapBatches
from evenflow.engine.operators.rows.project import Project
from evenflow.engine.operators.rows.union import Union

ROWS = {"a": [1, 2, 3], "b": ["x", None, "z"]}


def test_map_gives_a_row_for_every_row_and_keeps_the_times(drive):
    step = drive(Map(lambda row: {"c": row["a"] * 2, "d": row["b"]}))
    assert step.process(ROWS, [7, 8, 9]) == [{"c": 2, "d": "x"}, {"c": 4, "d": None}, {"c": 6, "d": "z"}]
    assert step.times["out"] == [7, 8, 9]


def test_map_to_plain_values_gives_the_column_item(drive):
    assert drive(Map(lambda row: row["a"])).process(ROWS) == [{"item": 1}, {"item": 2}, {"item": 3}]


def test_map_error_names_the_first_row_for_which_it_raised(drive):
    step = drive(Map(lambda row: {"c": row["b"].upper()}))
    with pytest.raises(RecordError, match=r"(?s)operator `step`: .*AttributeError.*record: \{'a': 2, 'b': None\}"):
        step.process(ROWS)


def test_schema_fixes_the_types_before_the_first_value(drive):
    step = drive(Map(lambda row: {"c": None}, pa.schema({"c": pa.float64()})))
    step.process(ROWS)
    assert step.schemas[0].field("c").type == pa.float64()


def test_value_of_another_type_in_mid_stream_names_column_value_and_cure(drive):
    step = drive(Map(lambda row: {"c": row["a"] if row["a"] < 4 else "four"}))
    step.process(ROWS)
    with pytest.raises(
        RecordError, match=r"operator `step`: column `c` is int64 in this stream, got 'four' \(str\) from .*, and no type holds"
    ):
        step.process({"a": [4], "b": ["x"]})


def test_column_of_nulls_takes_the_first_type_that_comes(drive):
    step = drive(Map(lambda row: {"c": row["b"]}))
    step.process({"b": pa.nulls(2)})
    assert step.process({"b": ["x"]}) == [{"c": "x"}]
    step.process({"b": pa.nulls(1)})
    assert [str(schema.field("c").type) for schema in step.schemas] == ["null", "string", "string"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(lambda row: {"c": 1} if row["a"] < 3 else {"c": 1, "d": 2}, r"must have the columns \['c'\]", id="one more column"),
        pytest.param(lambda row: {"c": 1, "d": 1} if row["a"] < 3 else {"c": 1, "e": 2}, "must have the columns", id="another column"),
        pytest.param(lambda row: {"c": 1} if row["a"] < 3 else 3, "must have the columns", id="a plain value behind a dict"),
        pytest.param(lambda row: 3 if row["a"] < 3 else {"c": 1}, "must have the columns", id="a dict behind a plain value"),
        pytest.param(lambda row: {"c": object()}, "column `c` must have a type that Arrow has", id="an object"),
        pytest.param(lambda row: {"c": 1 if row["a"] < 3 else "x"}, "column `c`", id="two types in one batch"),
        pytest.param(lambda row: {"c": 2**70}, "column `c`", id="an integer that does not fit"),
    ],
)
def test_rows_of_another_shape_are_refused(drive, function, message):
    with pytest.raises(RecordError, match=f"operator `step`: .*{message}"):
        drive(Map(function)).process(ROWS)


def test_flat_map_gives_any_number_of_rows_with_the_time_of_theirs(drive):
    step = drive(FlatMap(lambda row: [{"n": i} for i in range(row["a"] - 1)]))
    assert step.process(ROWS, [7, 8, 9]) == [{"n": 0}, {"n": 0}, {"n": 1}]
    assert step.times["out"] == [8, 9, 9]


def test_flat_map_takes_generators_and_emits_nothing_for_nothing(drive):
    assert drive(FlatMap(lambda row: (value for value in (row["a"], -row["a"])))).process({"a": [5]}) == [{"item": 5}, {"item": -5}]
    assert drive(FlatMap(lambda row: [])).process(ROWS) == []


@pytest.mark.parametrize("result", [None, "text", {"a": 1}, b"bytes"])
def test_flat_map_that_returns_no_list_is_refused(drive, result):
    with pytest.raises(RecordError, match="operator `step`: flat_map must return a list"):
        drive(FlatMap(lambda row: result)).process(ROWS)


@pytest.mark.parametrize("predicate", [lambda row: row["a"] > 1, col("a") > 1], ids=["function", "expression"])
def test_filter_keeps_rows_and_times_for_which_the_predicate_is_true(drive, predicate):
    step = drive(Filter(predicate))
    assert step.process(ROWS, [7, 8, 9]) == [{"a": 2, "b": None}, {"a": 3, "b": "z"}]
    assert step.times["out"] == [8, 9]


def test_null_of_an_expression_is_false(drive):
    assert drive(Filter(col("b") == "z")).process(ROWS) == [{"a": 3, "b": "z"}]


@pytest.mark.parametrize(("on_error", "kept"), [("stop", None), ("skip", [{"a": 3, "b": "z"}])])
def test_none_of_a_function_is_refused(drive, on_error, kept):
    step = drive(Filter(lambda row: row["b"] and row["b"] == "z", on_error))
    if kept is not None:
        assert step.process(ROWS) == kept
        return
    with pytest.raises(
        RecordError, match=r"(?s)returned None, perhaps because of a missing `return`: return True or False.*record: \{'a': 2, 'b': None"
    ):
        step.process(ROWS)


@pytest.mark.parametrize("predicate", [lambda row: False, col("a") > 9], ids=["function", "expression"])
def test_filter_that_keeps_nothing_emits_nothing(drive, predicate):
    assert drive(Filter(predicate)).process(ROWS) == []


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        pytest.param(lambda row: row["c"], "raised KeyError: 'c'", id="missing key"),
        pytest.param(col("c") > 1, "no column `c`; there are: a, b", id="missing column"),
        pytest.param(col("a") + 1, "has the type int64, expected booleans", id="no truth value"),
        pytest.param(col("b") > 1, "> can't compare string and int64", id="types that can't be compared"),
    ],
)
def test_predicate_that_fails_is_named(drive, predicate, message):
    with pytest.raises(RecordError, match=f"operator `step`: .*{message}"):
        drive(Filter(predicate)).process(ROWS)


@pytest.mark.parametrize(
    "function",
    [
        lambda batch: pa.record_batch({"c": pc.add(batch["a"], 1)}),
        lambda batch: pa.table({"c": pc.add(batch["a"], 1)}),
        lambda batch: {"c": pc.add(batch["a"], 1)},
    ],
    ids=["record batch", "table", "dict"],
)
def test_map_batches_takes_what_arrow_makes(drive, function):
    step = drive(MapBatches(function))
    assert step.process(ROWS, [7, 8, 9]) == [{"c": 2}, {"c": 3}, {"c": 4}]
    assert step.times["out"] == [7, 8, 9]


def test_map_batches_keeps_the_number_of_rows_with_event_time(drive):
    step = drive(MapBatches(lambda batch: batch.slice(1)))
    assert len(step.process(ROWS)) == 2
    with pytest.raises(RecordError, match=r"operator `step`: got 3 rows and returned 2: .*event_time="):
        step.process(ROWS, [7, 8, 9])


def test_map_batches_that_returns_something_else_says_what_it_expects(drive):
    with pytest.raises(RecordError, match=r"operator `step`: .*expected a RecordBatch, a Table, a frame or a dict of columns, got int"):
        drive(MapBatches(lambda batch: 3)).process(ROWS)


def test_map_batches_error_shows_the_batch(drive):
    with pytest.raises(RecordError, match=r"(?s)operator `step`: .*ZeroDivisionError.*a batch of 3 rows beginning with \{'a': 1"):
        drive(MapBatches(lambda batch: 1 / 0)).process(ROWS)


def test_select_drop_and_rename_choose_columns(drive):
    assert drive(Project(select=("b", "a"))).process({"a": [1], "b": [2], "c": [3]}) == [{"b": 2, "a": 1}]
    assert drive(Project(drop=frozenset({"a"}))).process({"a": [1], "b": [2]}) == [{"b": 2}]
    assert drive(Project(rename={"a": "z"})).process({"a": [1], "b": [2]}) == [{"z": 1, "b": 2}]


@pytest.mark.parametrize(
    ("project", "message"),
    [
        pytest.param(Project(select=("c",)), "no column `c`; there are: a, b", id="select"),
        pytest.param(Project(drop=frozenset({"c"})), "no column `c`; there are: a, b", id="drop"),
        pytest.param(Project(rename={"c": "d"}), "no column `c`; there are: a, b", id="rename"),
        pytest.param(Project(rename={"a": "b"}), "two columns would have the name `b`", id="one name twice"),
    ],
)
def test_columns_that_are_not_there_are_named(drive, project, message):
    with pytest.raises(RecordError, match=f"operator `step`: {message}"):
        drive(project).process(ROWS)


def test_union_passes_everything_on(drive):
    step = drive(Union())
    assert step.process({"a": [1]}) + step.process({"a": [2]}) == [{"a": 1}, {"a": 2}]


def test_union_puts_the_columns_into_one_order(drive):
    step = drive(Union())
    step.process({"a": [1], "b": [2]})
    step.process({"b": [3], "a": [4]})
    assert [schema.names for schema in step.schemas] == [["a", "b"], ["a", "b"]]


def test_union_of_other_columns_is_refused(drive):
    step = drive(Union())
    step.process({"a": [1], "b": [2]})
    with pytest.raises(RecordError, match=r"operator `step`: one stream has the columns a, b, another has a, c"):
        step.process({"a": [1], "c": [2]})


def test_union_of_a_stream_with_event_time_and_one_without_is_refused(drive):
    step = drive(Union())
    step.process({"a": [1]}, [5])
    with pytest.raises(RecordError, match="operator `step`: one stream has event time and another has none"):
        step.process({"a": [1]})


def test_key_by_a_function_adds_its_value(drive):
    step = drive(KeyBy(lambda row: row["a"] % 2, "parity"))
    assert step.process({"a": [1, 2]}, [7, 8]) == [{"a": 1, "parity": 1}, {"a": 2, "parity": 0}]
    assert step.times["out"] == [7, 8]


def test_key_by_a_function_may_give_null(drive):
    assert drive(KeyBy(lambda row: row["b"], "key")).process({"b": [None, "x"]}) == [{"b": None, "key": None}, {"b": "x", "key": "x"}]


@pytest.mark.parametrize("key", [[1], (1, 2), {"a": 1}, {1}])
def test_container_as_key_is_refused_with_the_row(drive, key):
    with pytest.raises(RecordError, match=r"(?s)operator `step`: a (list|tuple|dict|set) can't be a key: .*record: \{'a': 1\}"):
        drive(KeyBy(lambda row: key, "key")).process({"a": [1]})


def test_key_column_that_is_taken_is_refused(drive):
    with pytest.raises(RecordError, match="operator `step`: rows already have a column `a`"):
        drive(KeyBy(lambda row: 1, "a")).process(ROWS)


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        (Project(select=("a",), rename={"a": "b"}), "a a->b"),
        (Filter(col("a") > 1), "a > 1"),
        (Map(str.upper), "str.upper"),
    ],
)
def test_operator_describes_itself_for_plans(operator, words):
    assert operator.describe() == words


def test_cast_gives_columns_other_types_and_leaves_the_rest(drive):
    step = drive(Cast({"a": pa.timestamp("ms", "UTC"), "b": pa.large_string()}))
    assert step.process({"c": [True], "a": [1], "b": ["x"]}, [7]) == [{"c": True, "a": datetime(1970, 1, 1, 0, 0, 0, 1000, UTC), "b": "x"}]
    assert step.schemas[0].names == ["c", "a", "b"]
    assert step.schemas[0].types == [pa.bool_(), pa.timestamp("ms", "UTC"), pa.large_string()]
    assert step.times["out"] == [7]


def test_cast_of_a_missing_column_lists_all_columns(drive):
    with pytest.raises(RecordError, match="operator `step`: no column `c`; there are: a, b"):
        drive(Cast({"c": pa.int64()})).process(ROWS)


@pytest.mark.parametrize(("kind", "problem"), [(pa.int8(), "300 not in range"), (pa.list_(pa.int64()), "Unsupported cast")])
def test_cast_of_a_value_that_does_not_fit_names_the_column(drive, kind, problem):
    with pytest.raises(RecordError, match=f"operator `step`: column `a` can't be cast from int64: .*{problem}"):
        drive(Cast({"a": kind})).process({"a": [1, 300]})
