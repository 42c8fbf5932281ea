from __future__ import annotations

import gzip

import pyarrow as pa
import pytest
from bounded_sources import rows

from evenflow.connectors.formats.csv import LEAST_ROWS, read_csv
from evenflow.engine.errors import ConnectorError, FlowError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.csv"


def test_another_delimiter(path):
    path.write_text("a;b\n1,5;2\n")
    assert rows(read_csv(path, delimiter=";")) == [{"a": "1,5", "b": 2}]


def test_files_without_a_header_get_the_given_names(path):
    path.write_text("1,x\n")
    assert rows(read_csv(path, column_names=["n", "word"])) == [{"n": 1, "word": "x"}]


def test_one_line_without_a_header_is_a_row(path):
    path.write_text("1,x")
    assert rows(read_csv(path, column_names=["n", "word"])) == [{"n": 1, "word": "x"}]


def test_types_may_be_given_for_some_columns(path):
    path.write_text("n,at,id\n1,2026-01-31T10:00:00.5,007\n")
    source = read_csv(path, schema={"id": "string", "at": pa.timestamp("us")})
    source.start()
    assert source.reader(0, 1).poll(1).rows.schema.types == [pa.int64(), pa.timestamp("us"), pa.string()]


def test_only_unquoted_nothing_is_null(path):
    path.write_text('a,b\n,1\n"",2\nnull,3\n')
    assert [row["a"] for row in rows(read_csv(path))] == [None, "", "null"]
    assert [row["a"] for row in rows(read_csv(path, null_values=["null"]))] == ["", "", None]


def test_a_value_may_hold_a_line_end(path):
    path.write_text('a,b\n"x\ny",1\n')
    assert rows(read_csv(path)) == [{"a": "x\ny", "b": 1}]


def test_a_compressed_file_is_read(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"n\n1\n"))
    assert rows(read_csv(tmp_path)) == [{"n": 1}]


def test_all_files_get_one_type(tmp_path):
    (tmp_path / "a.csv").write_text("n,m\n1,\n")
    (tmp_path / "b.csv").write_text("n,m\n2.5,x\n")
    assert rows(read_csv(tmp_path)) == [{"n": 1.0, "m": None}, {"n": 2.5, "m": "x"}]


@pytest.mark.parametrize("content", ["", "\n", "a,b", "a,b\n"])
def test_a_file_without_rows_gives_none(path, content):
    path.write_text(content)
    assert rows(read_csv(path)) == []


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        pytest.param("a,b\n1,2\n3\n", {}, r"a.csv can't be read: .*Expected 2 columns, got 1: 3", id="too few values"),
        pytest.param(
            "a\n" + "1\n" * 900_000 + "x\n", {}, r"a.csv can't be read after row \d+: .*int64: invalid value 'x'", id="a late value"
        ),
        pytest.param("a,a\n1,2\n", {}, "two columns named `a`", id="two columns of one name"),
        pytest.param("a\n1\n", {"event_time": "ts"}, "no event time column `ts`", id="no event time"),
        pytest.param("a\nx\n", {"event_time": "a"}, "event time column `a` is string", id="event time is text"),
        pytest.param("a\n1\n", {"schema": {"b": "int64"}}, "`schema` has a column `b` that no file has: a", id="a type for no column"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(path, content, options, message):
    path.write_text(content)
    with pytest.raises(ConnectorError, match=message):
        rows(read_csv(path, **options))


def test_files_of_different_columns_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text("a,c\n1,2\n")
    with pytest.raises(ConnectorError, match=r"b.csv has the columns a, c, but .*a.csv has a, b"):
        read_csv(tmp_path).start()


def test_files_of_different_types_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a\n2026-01-31\n")
    (tmp_path / "b.csv").write_text("a\n1.5\n")
    with pytest.raises(ConnectorError, match=r"b.csv does not fit the files before it: .*give the type in `schema`"):
        read_csv(tmp_path).start()


def test_an_unknown_type_is_refused():
    with pytest.raises(FlowError, match="column `n`: type 'int65' is unknown; there are: int8 to int64"):
        read_csv("a.csv", schema={"n": "int65"})


def test_blocks_of_a_file_are_put_together_to_large_batches(tmp_path):
    lines = [f"{n},{'x' * 200}" for n in range(30_000)]
    (tmp_path / "wide.csv").write_text("\n".join(["n,text", *lines]))
    source, sizes, numbers = read_csv(tmp_path / "wide.csv"), [], []
    source.start()
    reader = source.reader(0, 1)
    while not reader.finished:
        batch = reader.poll(100_000)
        if batch is not None:
            sizes.append(batch.num_rows)
            numbers += batch.rows["n"].to_pylist()
    assert numbers == list(range(30_000))
    assert all(size >= LEAST_ROWS for size in sizes[:-1])
    assert len(sizes) == 2
