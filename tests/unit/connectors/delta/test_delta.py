"""Delta Lake tables as sinks and sources, read back with the library and with DuckDB."""

from __future__ import annotations

from datetime import UTC, datetime

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.testing import check_sink, check_source

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


def begun(folder):
    sink = ef.write_delta(folder)
    sink.start()
    return sink


def prepared(sink, checkpoint, **columns):
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch(columns)))
    return writer.prepare(checkpoint)


def rows_of(folder):
    return query(folder, "SELECT * FROM written ORDER BY ALL")


def query(folder, sql):
    with duckdb.connect() as database:
        database.register("written", DeltaTable(str(folder)).to_pyarrow_table())
        return database.execute(sql).fetchall()


def versions(folder):
    return DeltaTable(str(folder)).version()


def test_a_checkpoint_is_a_version_however_often_it_is_committed(tmp_path):
    sink = begun(tmp_path)
    for checkpoint, number in ((1, 10), (2, 20)):
        parts = prepared(sink, checkpoint, n=[number, number + 1])
        for _ in range(3):
            sink.commit(checkpoint, parts)
        sink.commit(checkpoint, [])
    assert rows_of(tmp_path) == [(10,), (11,), (20,), (21,)]
    assert versions(tmp_path) == 1


def test_rows_are_not_in_the_table_before_their_commit(tmp_path):
    sink = begun(tmp_path)
    sink.commit(1, prepared(sink, 1, n=[1]))
    prepared(sink, 2, n=[2])
    assert rows_of(tmp_path) == [(1,)]


def test_another_run_adds_to_the_table_and_repeats_the_commits_of_the_one_before(tmp_path):
    first = begun(tmp_path)
    parts = prepared(first, 7, n=[1])
    first.commit(7, parts)
    second = begun(tmp_path)
    second.commit(7, parts)
    second.commit(8, prepared(second, 8, n=[2]))
    assert rows_of(tmp_path) == [(1,), (2,)]


def test_rows_of_later_checkpoints_are_retracted(tmp_path):
    sink = begun(tmp_path)
    for checkpoint in (1, 2, 3):
        sink.commit(checkpoint, prepared(sink, checkpoint, n=[checkpoint]))
    for _ in range(2):
        sink.retract(1)
    assert rows_of(tmp_path) == [(1,)]
    sink.commit(2, prepared(sink, 2, n=[22]))
    assert rows_of(tmp_path) == [(1,), (22,)]


def test_new_columns_come_into_the_table_and_other_types_do_not(tmp_path):
    sink = begun(tmp_path)
    sink.commit(1, prepared(sink, 1, n=[1], later=pa.nulls(1)))
    sink.commit(2, prepared(sink, 2, n=[2], later=["x"]))
    assert rows_of(tmp_path) == [(1, None), (2, "x")]
    with pytest.raises(ef.ConnectorError, match=r"column `n` is long in .*, and string in the rows; cast\(\) it"):
        sink.commit(3, prepared(sink, 3, n=["three"]))
    assert rows_of(tmp_path) == [(1, None), (2, "x")]


@pytest.mark.slow
def test_sink_holds_its_contract_whatever_crashes_when(tmp_path_factory):
    def begin():
        folder = tmp_path_factory.mktemp("delta")

        def read():
            if not DeltaTable.is_deltatable(str(folder)):
                return []
            return DeltaTable(str(folder)).to_pyarrow_table().to_pylist()

        return ef.write_delta(folder), read

    check_sink(begin, seeds=range(8))


def test_job_writes_what_another_reads(tmp_path):
    flow = ef.Dataflow("write")
    flow.read(ef.generate(total=500, keys=7)).write(ef.write_delta(tmp_path / "rows"))
    flow.run(runtime="local").wait()
    found = []
    flow = ef.Dataflow("read")
    counts = flow.read(ef.read_delta(tmp_path / "rows", event_time="ts")).key_by("key").window(ef.tumbling("100ms"))
    counts.aggregate(n=ef.count()).write(ef.to_list(found))
    flow.run(runtime="local").wait()
    expected = query(tmp_path / "rows", "SELECT key, count(*) AS n FROM written GROUP BY key, ts // 100")
    assert sorted((row["key"], row["n"]) for row in found) == sorted(expected)


def test_source_holds_its_contract(tmp_path):
    for number in range(3):
        rows = pa.table({"ts": range(number * 100, number * 100 + 50), "n": range(50)})
        deltalake.write_deltalake(str(tmp_path), rows, mode="append")
    check_source(ef.read_delta(tmp_path, event_time="ts"), seeds=range(5))


def test_a_version_is_what_it_was(tmp_path):
    for number in range(3):
        deltalake.write_deltalake(str(tmp_path), pa.table({"n": [number]}), mode="append")
    found = []
    flow = ef.Dataflow("read")
    flow.read(ef.read_delta(tmp_path, version=1)).write(ef.to_list(found))
    flow.run(runtime="local").wait()
    assert sorted(row["n"] for row in found) == [0, 1]


def test_tables_that_can_not_be_read(tmp_path):
    with pytest.raises(ef.ConnectorError, match=r"is not a Delta table: it has no log; check the path"):
        ef.read_delta(tmp_path / "nowhere").start()
    table = str(tmp_path / "table")
    deltalake.write_deltalake(table, pa.table({"n": [1], "day": ["a"]}), partition_by=["day"])
    with pytest.raises(ef.ConnectorError, match=r"is partitioned by day, which isn't supported; read it with Spark"):
        ef.read_delta(table).start()
    with pytest.raises(ef.ConnectorError, match=r"is partitioned by day, which isn't supported"):
        ef.write_delta(table).start()
    with pytest.raises(ef.ConnectorError, match=r"version 9 of .* can't be read"):
        ef.read_delta(table, version=9).start()


def test_vacuumed_table_is_an_error(tmp_path):
    deltalake.write_deltalake(str(tmp_path), pa.table({"n": [1]}))
    deltalake.write_deltalake(str(tmp_path), pa.table({"n": [2]}), mode="overwrite")
    DeltaTable(str(tmp_path)).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(ef.ConnectorError, match=r"was removed, presumably vacuumed; read a newer version"):
        ef.read_delta(tmp_path, version=0).start()


def test_folder_that_holds_something_else(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ef.ConnectorError, match=r"is not empty and not a Delta table; choose another folder"):
        ef.write_delta(tmp_path).start()


def test_times_of_the_type_int96_are_those_of_the_table_or_refused(tmp_path):
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), None]
    deltalake.write_deltalake(tmp_path, pa.table({"at": pa.array(times, pa.timestamp("us", "UTC"))}))
    (file,) = tmp_path.glob("*.parquet")

    def read(column):
        pq.write_table(pa.table({"at": column}), file, use_deprecated_int96_timestamps=True)
        source = ef.read_delta(tmp_path)
        source.start()
        return source.reader(0, 1).poll(10).rows.column("at")

    assert read(pa.array(times, pa.timestamp("us"))).to_pylist() == times
    with pytest.raises(
        ef.ConnectorError, match=r"column `at` has the INT96 time 1970-01-01 00:00:00.000001001, which timestamp\[us\] can't"
    ):
        read(pa.array([1_001], pa.timestamp("ns")))
