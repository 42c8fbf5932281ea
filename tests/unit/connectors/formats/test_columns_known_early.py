"""The columns of files are known when the flow is written if they are certain then; a start with others is refused."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef
from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.json import read_json
from evenflow.connectors.formats.parquet import read_parquet
from evenflow.engine.columns import Columns
from evenflow.engine.errors import ConnectorError, FlowError

ROWS = pa.table({"k": ["a", "b", "a"], "n": [1, 2, 3]})
TYPES = {"k": pa.string(), "n": pa.int64()}


def write(path, table=ROWS):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def totals(source):
    """Return the rows of a query over the source."""
    flow, rows = ef.Dataflow("totals"), []
    ef.sql("SELECT k, SUM(n) AS total FROM t GROUP BY k", t=flow.read(source)).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    return {row["k"]: row["total"] for row in rows}


def test_columns_of_parquet_are_those_of_the_first_file(tmp_path):
    write(tmp_path / "in" / "a.parquet")
    for path in (tmp_path / "in", tmp_path / "in" / "a.parquet", tmp_path / "in" / "*.parquet", [tmp_path / "in"]):
        assert read_parquet(path).known_columns() == Columns(TYPES, complete=True)
    assert read_parquet(tmp_path / "in", columns=["n"]).known_columns() == Columns({"n": pa.int64()}, complete=True)


def test_sql_reads_a_parquet_file_with_all_its_columns(tmp_path, waiting_for_jobs):
    write(tmp_path / "a.parquet")
    assert totals(read_parquet(tmp_path)) == {"a": 4, "b": 2}
    flow, rows = ef.Dataflow("all"), []
    ef.sql("SELECT * FROM t WHERE n > 1", t=flow.read(read_parquet(tmp_path))).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert rows == [{"k": "b", "n": 2}, {"k": "a", "n": 3}]


def test_an_expression_with_a_missing_column_is_refused_when_it_is_written(tmp_path):
    write(tmp_path / "a.parquet")
    stream = ef.Dataflow("f").read(read_parquet(tmp_path))
    with pytest.raises(FlowError, match=r"no column `m`; there are: k, n"):
        stream.filter(ef.col("m") > 1)
    with pytest.raises(FlowError, match=r"`k`|k \+ n|string"):
        stream.with_columns(total=ef.col("k") + ef.col("n"))


def test_columns_of_folders_are_known_too(tmp_path):
    write(tmp_path / "day=3" / "a.parquet")
    assert read_parquet(tmp_path).known_columns() == Columns({**TYPES, "day": pa.string()}, complete=True)
    declared = read_parquet(tmp_path, schema={"day": "int32"})
    assert declared.known_columns() == Columns({**TYPES, "day": pa.int32()}, complete=True)
    declared.start()
    assert declared.known_columns() == Columns({**TYPES, "day": pa.int32()}, complete=True)


def test_a_column_of_nulls_has_no_type_yet_and_takes_that_of_another_file(tmp_path):
    write(tmp_path / "a.parquet", pa.table({"k": ["a"], "n": pa.nulls(1)}))
    write(tmp_path / "b.parquet")
    source = read_parquet(tmp_path)
    assert source.known_columns() == Columns({"k": pa.string(), "n": None}, complete=True)
    source.start()
    assert source.known_columns() == Columns(TYPES, complete=True)


@pytest.mark.parametrize("broken", ["missing", "no footer", "a folder"])
def test_nothing_is_known_and_nothing_fails_while_there_is_no_readable_file(tmp_path, broken):
    if broken == "no footer":
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.parquet").write_bytes(b"PAR1")
    if broken == "a folder":
        (tmp_path / "in" / "a.parquet").mkdir(parents=True)
    source = read_parquet(tmp_path / "in")
    assert source.known_columns() == Columns()
    with pytest.raises(FlowError, match="aren't known before it runs: declare them"):
        totals(source)
    with pytest.raises(ConnectorError):
        source.start()


def test_a_file_without_an_asked_column_is_refused_at_the_start(tmp_path):
    write(tmp_path / "a.parquet")
    source = read_parquet(tmp_path, columns=["n", "m"])
    assert source.known_columns() == Columns({"n": None, "m": None}, complete=True)
    with pytest.raises(ConnectorError, match="has no column `m`"):
        source.start()


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (pa.table({"k": ["a"], "n": ["x"]}), "column `n` is string now, and was int64 in .*a.parquet when the flow was written"),
        (pa.table({"k": ["a"]}), "column `n` is missing now, and was int64"),
        (pa.table({"k": ["a"], "n": [1], "m": [1]}), "column `m` is int64 now, and was missing"),
        (pa.table({"k": ["a"], "n": pa.nulls(1)}), "column `n` is null now, and was int64"),
    ],
    ids=["another type", "missing", "another column", "nulls"],
)
def test_files_that_changed_since_the_flow_was_written_are_refused(tmp_path, table, problem):
    write(tmp_path / "a.parquet")
    source = pickle.loads(pickle.dumps(read_parquet(tmp_path)))
    write(tmp_path / "a.parquet", table)
    with pytest.raises(ConnectorError, match=problem):
        source.start()


def test_files_that_appear_later_may_have_their_columns_in_another_order(tmp_path):
    write(tmp_path / "b.parquet")
    source = read_parquet(tmp_path)
    write(tmp_path / "a.parquet", ROWS.select(["n", "k"]))
    source.start()
    assert [*source.known_columns().types] == ["k", "n"]
    reader = source.reader(0, 1)
    assert {tuple(batch.rows.schema.names) for batch in iter(lambda: reader.poll(10), None)} == {("k", "n")}


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_sql_reads_files_with_a_declared_schema_that_appear_later(tmp_path, waiting_for_jobs, form):
    folder = tmp_path / "later"
    read = {"parquet": read_parquet, "csv": read_csv, "json": read_json}[form]
    source = read(folder, schema=TYPES)
    flow, rows = ef.Dataflow("later"), []
    stream = flow.read(source)
    with pytest.raises(FlowError, match=r"\*: `t` may have columns besides k, n: name those that the query reads"):
        ef.sql("SELECT * FROM t", t=stream)
    with pytest.raises(FlowError, match="m"):
        ef.sql("SELECT m FROM t", t=stream)
    ef.sql("SELECT k, n + 1 AS n, COUNT(*) AS times FROM t WHERE k <> 'b' GROUP BY k, n + 1", t=stream).write(ef.to_list(rows))
    folder.mkdir()
    {
        "parquet": lambda: write(folder / "a.parquet", ROWS.append_column("more", [[1, 2, 3]]).select(["k", "n"])),
        "csv": lambda: (folder / "a.csv").write_text("more,k,n\n0,a,1\n0,b,2\n0,a,3\n"),
        "json": lambda: (folder / "a.json").write_text('{"k": "a", "n": 1}\n{"k": "b", "n": 2, "more": 0}\n{"k": "a", "n": 3}\n'),
    }[form]()
    flow.run(runtime="local").wait("60s")
    assert sorted((row["k"], row["n"], row["times"]) for row in rows) == [("a", 2, 1), ("a", 4, 1)]


def test_a_declared_schema_may_have_the_columns_of_folders_alone(tmp_path):
    source = read_parquet(tmp_path / "later", schema={"day": "int32"})
    assert source.known_columns() == Columns({"day": pa.int32()}, complete=False)
    write(tmp_path / "later" / "day=3" / "a.parquet")
    source.start()
    assert source.known_columns() == Columns({**TYPES, "day": pa.int32()}, complete=True)


def test_windows_of_files_with_a_declared_schema_need_no_other_columns(tmp_path, waiting_for_jobs):
    (tmp_path / "a.csv").write_text("more,k,ts\n0,a,1\n0,b,2\n0,a,11\n")
    flow, rows = ef.Dataflow("windows"), []
    stream = flow.read(read_csv(tmp_path, schema={"k": "string", "ts": "int64"}, event_time="ts", unit="s"))
    table = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
    ef.sql(f"SELECT COUNT(*) AS n FROM {table} GROUP BY window_start, window_end", t=stream).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert sorted(row["n"] for row in rows) == [1, 2]
