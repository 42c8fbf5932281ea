"""Rows, columns, times and files that a flow can't take: each ends it with the place, the cause and what to do."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef

HOURS = ef.tumbling("1h")


class Unshowable:
    def __repr__(self):
        raise RuntimeError("no text")


def same(stream):
    return stream


def mapped(value):
    return lambda s: s.map(lambda row: value(row))


def counted(*keys):
    return lambda s: s.key_by(*keys).aggregate(n=ef.count())


def hourly(s):
    return s.key_by("k").window(HOURS).aggregate(n=ef.count())


WRONG = {
    # Columns
    "a key column that isn't there": (counted("w"), "`aggregate`", "no key column `w`; there are: k, v, t"),
    "an aggregate of a column that isn't there": (
        lambda s: s.key_by("k").aggregate(n=ef.sum("w")), "`aggregate`", "sum(`w`): there is no column `w`; there are: k, v, t",
    ),
    "a sum of text": (lambda s: s.key_by("v").aggregate(n=ef.sum("k")), "`aggregate`", "sum(`k`)", "string", "convert it"),
    "select of a column that isn't there": (lambda s: s.select("w"), "`select`", "no column `w`; there are: k, v, t"),
    "drop of a column that isn't there": (lambda s: s.drop("w"), "`drop`", "no column `w`; there are: k, v, t"),
    "drop of all columns": (lambda s: s.drop("k", "v", "t"), "`drop`", "no column is left of k, v, t"),
    "rename to a column that is there": (lambda s: s.rename(v="k"), "`rename`", "two columns would have the name `k`"),
    "a key's column that is there": (
        lambda s: s.key_by(lambda row: 1, column="k").aggregate(n=ef.count()), "`key_by`", "already have a column `k`", "column='...'",
    ),
    # Rows
    "a row of other columns": (mapped(lambda row: {"a": 1} if row["v"] == 1 else {"b": 1}), "`map`", "columns ['a']", "['b']", "as None"),
    "a row without columns": (mapped(lambda row: {}), "`map`", "a row is {}", "'v': 1"),
    "a column without a string's name": (mapped(lambda row: {1: 2}), "`map`", "the column name 1 is no string"),
    "a column that changes its type": (
        mapped(lambda row: {"a": 1 if row["v"] == 1 else "x"}), "`map`", "`a` is int64 in the rows before, got 'x' (str)", "schema={'a'",
    ),
    "a value of no type": (mapped(lambda row: {"a": object()}), "`map`", "column `a` must have a type that Arrow has", "(object)"),
    "a value that can't be shown": (mapped(lambda row: {"a": Unshowable()}), "`map`", "column `a`", "__repr__ raises RuntimeError"),
    "an integer of 70 bits": (mapped(lambda row: {"a": 2**70}), "`map`", "column `a`", "(int)"),
    "a value of another type than the schema": (
        lambda s: s.map(lambda row: {"a": "x"}, schema={"a": "int64"}), "`map`", "column `a` is int64 in schema, got 'x' (str)",
    ),
    "a column that the schema lacks": (lambda s: s.map(lambda row: {"a": 1}, schema={"b": "int64"}), "`map`", "columns ['b']", "['a']"),
    "rows and values in turn": (mapped(lambda row: row if row["v"] == 1 else 2), "`map`", "this one has ['item']"),
    "a decimal of too many digits": (
        lambda s: s.map(lambda row: {"a": Decimal("1.2345")}, schema={"a": pa.decimal128(4, 2)}), "`map`", "decimal128(4, 2)", "1.2345",
    ),
    "windows without event time": (hourly, "`aggregate` has windows, but the rows of `from_items` have no event time", "event_time="),
}  # fmt: skip

TIMED = {
    "a time that doesn't fit microseconds": ([{"k": "a", "t": 2**62}], {}, "`t` is 4611686018427387904 ms", "'k': 'a'", "unit="),
    "a time of microseconds taken for seconds": ([{"t": 1_600_000_000_000_000}], {"unit": "s"}, "`t` is 1600000000000000 s", "unit='s'"),
    "an unsigned time of 64 bits": ([{"t": np.uint64(2**63 + 1)}], {"unit": "us"}, "`t` is 9223372036854775809 us"),
    "a time after the year 9999": ([{"t": 253_402_300_800_000}], {}, "`t` is 253402300800000 ms", "years 1 to 9999"),
    "a time before the year 1": ([{"t": -62_135_596_800_001}], {}, "`t` is -62135596800001 ms", "years 1 to 9999"),
    "a time that is a float": ([{"t": 1.5}], {}, "`t` is double; expected a timestamp, a date or an integer"),
    "a time that is text": ([{"t": "2020-01-01"}], {}, "`t` is string; expected a timestamp"),
    "a null in place of a time": ([{"t": 1}, {"t": None}], {}, "`t` is null in row {'t': None}", "filter such rows out"),
    "a window that ends after 9999": ([{"k": "a", "t": datetime(9999, 12, 31, 23, 59)}], {}, "9999-12-31T23:59:00", "ends after 9999"),
    "a window that begins before the year 1": (
        [{"k": "a", "t": datetime(1, 1, 1)}], {"windows": ef.sliding("2h", every="1h")}, "0001-01-01T00:00:00", "begins before the year 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_row_is_named_with_its_operator_and_what_to_do(ended, name):
    build, *said = WRONG[name]
    message = str(ended(build))
    for part in said:
        assert part in message
    assert "Traceback" not in message


@pytest.mark.parametrize("name", TIMED)
def test_time_that_does_not_fit_is_named_with_its_row(ended, name):
    rows, options, *said = TIMED[name]
    windows = options.get("windows", HOURS)
    message = str(
        ended(lambda s: s.key_by("t").window(windows).aggregate(n=ef.count()), rows, event_time="t", unit=options.get("unit", "ms"))
    )
    for part in said:
        assert part in message


@pytest.mark.parametrize(
    "time",
    [
        pytest.param(datetime(9999, 12, 31, 22, 59, 59, 999_999, UTC), id="the last hour whose window ends in 9999"),
        pytest.param(datetime(1, 1, 1, tzinfo=UTC), id="the first hour"),
        pytest.param(date(9999, 12, 30), id="a date"),
    ],
)
def test_time_that_fits_is_followed(refused, time):
    flow, rows = ef.Dataflow("right"), []
    timed = flow.read(ef.from_items([{"t": time}], event_time="t", max_delay="9999d"))
    timed.key_by("t").window(HOURS).aggregate(n=ef.count()).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert [row["n"] for row in rows] == [1]


def test_one_row_in_a_long_window_with_many_panes_costs_no_more_than_its_results(refused):
    flow, rows = ef.Dataflow("right"), []
    timed = flow.read(ef.from_items([{"t": 5}], event_time="t", unit="s"))
    timed.key_by("t").window(ef.sliding("100000s", every="50000s", offset="1s")).aggregate(n=ef.count()).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert len(rows) == 2


def test_value_that_python_has_none_for_is_named_with_operator_and_column(ended):
    late = pa.array([253_402_300_800], pa.timestamp("s"))
    after_9999 = ended(lambda s: s.map_batches(lambda batch: {"at": late.take([0] * batch.num_rows)}).map(lambda row: row))
    assert "operator `map`: column `at` (timestamp[s]) has no Python value in row 0 of 2" in str(after_9999)
    in_a_list = ended(lambda s: s.map_batches(lambda batch: {"at": late.take([0] * batch.num_rows)}))
    assert "operator `to_list`: column `at`" in str(in_a_list)


def reading(source):
    def program():
        flow = ef.Dataflow("wrong")
        flow.read(source()).write(ef.to_list([]))
        flow.run(runtime="local").wait("60s")

    return program


FILES = {
    "no file": (None, lambda p: ef.read_parquet(p / "none.parquet"), "`read_parquet`", "none.parquet does not exist"),
    "a glob without files": (None, lambda p: ef.read_csv(p / "*.csv"), "`read_csv`", "no file matches"),
    "an empty list of files": (None, lambda p: ef.read_csv([]), "`read_csv`", "the list of paths is empty"),
    "an empty Parquet file": (b"", lambda p: ef.read_parquet(p / "file"), "file can't be read as Parquet"),
    "no Parquet": (b"a,b\n1,2\n", lambda p: ef.read_parquet(p / "file"), "file can't be read as Parquet"),
    "Latin-1 in a row": ("n,name\n1,M\xfcller\n".encode("latin-1"), lambda p: ef.read_csv(p / "file"), "`name`", "row 1", "encoding="),
    "Latin-1 in the header": ("n,st\xe4dte\n1,x\n".encode("latin-1"), lambda p: ef.read_csv(p / "file"), "/file", 'encoding="latin-1"'),
    "Latin-1 behind the first megabyte": (
        b"name\n" + b"abcdefg\n" * 200_000 + b"M\xfcller\n", lambda p: ef.read_csv(p / "file"), "Row #200002", 'encoding="latin-1"',
    ),
    "no UTF-8 as told": ("n\nM\xfcller\n".encode("latin-1"), lambda p: ef.read_csv(p / "file", encoding="utf-16"), "/file", "encoding="),
    "an unknown encoding": (b"n\n1\n", lambda p: ef.read_csv(p / "file", encoding="latin-99"), "encoding 'latin-99' is unknown"),
    "a row of too many values": (b"a,b\n1,2\n1,2,3\n", lambda p: ef.read_csv(p / "file"), "Row #3: Expected 2 columns, got 3"),
    "another type behind the first megabyte": (b"n\n" + b"1234567\n" * 200_000 + b"x\n", lambda p: ef.read_csv(p / "file"), "`schema`"),
    "a schema of other columns": (b"a\n1\n", lambda p: ef.read_csv(p / "file", schema={"b": "int64"}), "a column `b` that no file has: a"),
    "a schema of a type that no column has": (b"a\n1\n", lambda p: ef.read_csv(p / "file", schema={"a": dict}), "`a`: dict", "int64"),
    "an event time that no file has": (b"a\n1\n", lambda p: ef.read_csv(p / "file", event_time="t"), "no event time column `t`", "are: a"),
    "JSON that is Latin-1": ('{"a": "\xfc"}\n'.encode("latin-1"), lambda p: ef.read_json(p / "file"), "`read_json`", "JSON is UTF-8"),
    "JSON that is an array": (b'[{"a": 1}]', lambda p: ef.read_json(p / "file"), "/file can't be read", "from object to array"),
    "a field behind the first megabyte": (
        b'{"a": 1}\n' * 131_072 + b'{"a": 1, "late": 2}\n', lambda p: ef.read_json(p / "file"), "a field `late` in row 131073", "schema={",
    ),
    "a field of a field behind the first megabyte": (
        b'{"a": [{"b": 1}]}\n' * 80_000 + b'{"a": [{"b": 1, "c": 2}]}\n', lambda p: ef.read_json(p / "file"), "a field `a.c` in row 80001",
    ),
    "text that is Latin-1": ("M\xfcller\n".encode("latin-1"), lambda p: ef.read_text(p / "file"), "`read_text`", "line 1 is not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_wrong_file_is_named_with_what_to_do(refused, tmp_path, name):
    content, source, *said = FILES[name]
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    message = str(refused(reading(lambda: source(tmp_path))))
    for part in said:
        assert part in message
    assert "Traceback" not in message


def test_files_are_read_as_they_are_said_to_be(refused, tmp_path):
    (tmp_path / "latin.csv").write_bytes("name,n\nM\xfcller,1\n".encode("latin-1"))
    (tmp_path / "late.json").write_bytes(b'{"a": 1}\n' * 131_072 + b'{"a": 1, "late": 2}\n')
    flow, names, late = ef.Dataflow("right"), [], []
    flow.read(ef.read_csv(tmp_path / "latin.csv", encoding="latin-1")).write(ef.to_list(names))
    flow.read(ef.read_json(tmp_path / "late.json", schema={"late": "int64"})).filter(ef.col("late") > 0).write(ef.to_list(late))
    flow.run(runtime="local").wait("60s")
    assert (names, late) == ([{"name": "Müller", "n": 1}], [{"late": 2, "a": 1}])


def test_truncated_parquet_file_is_named(refused, tmp_path):
    pq.write_table(pa.table({"a": range(1000)}), tmp_path / "a.parquet")
    (tmp_path / "a.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:1000])
    assert "a.parquet can't be read as Parquet" in str(refused(reading(lambda: ef.read_parquet(tmp_path))))


def test_parquet_files_of_two_types_are_named(refused, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    message = str(refused(reading(lambda: ef.read_parquet(tmp_path))))
    assert "column `a` is int64 in " in message
    assert "all files need the same types" in message


@pytest.mark.parametrize(
    ("items", "said"),
    [
        pytest.param("abc", "from_items('abc'): expected a list", id="text"),
        pytest.param({"a": 1}, "from_items({'a': 1}): expected a list", id="one row"),
        pytest.param(None, "from_items(None): expected a list", id="nothing"),
        pytest.param([{"a": 1}, 2], "item 1 is int, but item 0 is a dict", id="rows and values"),
        pytest.param([{"a": 1}, {"a": "x"}], "item 1, column `a`: 'x' is a str, but the values before it are int64", id="two types"),
        pytest.param([{1: 2}], "item 0 has a key that is not a string", id="a number for a name"),
        pytest.param([{}], "item 0 has no columns", id="a row without columns"),
    ],
)
def test_wrong_items_are_named(refused, items, said):
    assert said in str(refused(lambda: ef.from_items(items)))
