"""`lookup`: rows with the columns of a table added."""

from __future__ import annotations

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.errors import ConnectorError, RecordError
from evenflow.engine.operators.joins.lookup import Lookup

CITIES = pa.table({"code": ["J", "L", "L"], "city": ["New York", "London", "Luton"], "n": [1, 2, 3]})
ON = {"dest": "code"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, [("L", "London"), ("L", "Luton"), ("X", None), (None, None), ("J", "New York")], id="left"),
        pytest.param({"how": "inner"}, [("L", "London"), ("L", "Luton"), ("J", "New York")], id="inner"),
    ],
)
def test_row_stands_with_each_of_its_matches_in_the_order_of_the_table(drive, options, expected):
    step = drive(Lookup(CITIES, ON, **options))
    rows = step.process({"dest": ["L", "X", None, "J"]}, [10, 20, 30, 40])
    assert [(row["dest"], row["city"]) for row in rows] == expected
    times = {"L": 10, "X": 20, None: 30, "J": 40}
    assert step.times["out"] == [times[dest] for dest, _ in expected]


@pytest.mark.parametrize("how", ["left", "inner"])
def test_batch_in_which_no_key_matches_twice_keeps_its_rows(drive, how):
    step = drive(Lookup(CITIES, ON, how=how, columns=("city",)))
    assert step.process({"dest": ["J", "J"]}, [1, 2]) == [{"dest": "J", "city": "New York"}] * 2
    assert (
        step.process({"dest": ["J", "X"]}) == [{"dest": "J", "city": "New York"}, {"dest": "X", "city": None}][: 1 if how == "inner" else 2]
    )
    assert step.process({"dest": ["X"]}) == ([] if how == "inner" else [{"dest": "X", "city": None}])


def test_column_that_the_stream_has_gets_the_suffix(drive):
    step = drive(Lookup(CITIES, ON, columns=("code", "n"), suffix="_of_city"))
    assert step.process({"dest": ["J"], "n": [7]}) == [{"dest": "J", "n": 7, "code": "J", "n_of_city": 1}]
    with pytest.raises(RecordError, match="two columns would be named `n_of_city`: give another suffix="):
        step.process({"dest": ["J"], "n": [7], "n_of_city": [8]})


def test_types_of_the_added_columns_are_the_tables_also_without_a_match(drive):
    table = CITIES.set_column(1, "city", CITIES["city"].dictionary_encode())
    step = drive(Lookup(table, ON))
    step.process({"dest": ["X"]})
    assert step.schemas[0].types == [pa.string(), pa.string(), pa.int64()]


def test_types_that_are_never_equal_are_refused(drive):
    problem = r"operator `step`: the stream's column `dest` is int64 and the table's `code` is string, which are never equal: cast one"
    with pytest.raises(RecordError, match=problem):
        drive(Lookup(CITIES, ON)).process({"dest": [1]})


def test_stream_without_the_key_column_is_refused(drive):
    with pytest.raises(RecordError, match="operator `step`: no key column `dest`; there are: a"):
        drive(Lookup(CITIES, ON)).process({"a": [1]})


def test_source_is_read_whole_when_the_operator_opens(drive):
    source = ef.from_items([{"code": "J", "city": "New York"}, {"code": "L", "city": None}])
    assert drive(Lookup(source, ON)).process({"dest": ["L", "J"]}) == [{"dest": "L", "city": None}, {"dest": "J", "city": "New York"}]


class Endless(ef.Source):
    name = "endless"

    def reader(self, index, parallelism):
        return Waiting()


class Waiting(ef.SourceReader):
    finished = False

    def poll(self, max_rows):
        return None

    def position(self):
        return None

    def seek(self, position):
        return None


@pytest.mark.parametrize(
    ("source", "options", "error", "said"),
    [
        pytest.param(ef.from_items([]), {}, ConnectorError, "the table is read from `from_items`, which has no rows", id="empty"),
        pytest.param(Endless(), {}, ConnectorError, "`endless`, which gave 0 rows and has not ended", id="endless"),
        pytest.param(ef.from_items([1]), {}, RecordError, "`step`: the table has no column `code`; there are: item", id="no column"),
        pytest.param(
            ef.from_items([{"code": 1}] * 2), {"unique": True}, RecordError, "unique=True, and the table has several rows with {'code': 1}",
            id="repeated keys",
        ),
    ],
)  # fmt: skip
def test_source_that_returns_no_table_is_named(drive, source, options, error, said):
    with pytest.raises(error, match=r"operator `step`") as caught:
        drive(Lookup(source, ON, **options))
    assert said in str(caught.value)
