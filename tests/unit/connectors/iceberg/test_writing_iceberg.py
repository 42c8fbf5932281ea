"""The sink into Iceberg tables: a checkpoint is in the table once, whatever is lost, repeated and committed by others."""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pytest
from iceberg_tables import catalog_options, created, rows_of, table_of
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField

import evenflow as ef
from evenflow.connectors.iceberg import committing
from evenflow.engine.batch import Batch
from evenflow.testing import check_sink

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


def sink_into(folder, **options):
    return ef.write_iceberg("shop.rows", catalog="test", options=catalog_options(folder), **options)


def begun(folder):
    sink = sink_into(folder)
    sink.start()
    return sink


def prepared(sink, checkpoint, **columns):
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch(columns)))
    return writer.prepare(checkpoint)


def path_of(part):
    return Path(unquote(urlparse(part["files"][0][2]).path))


def test_a_checkpoint_is_a_snapshot_however_often_it_is_committed(tmp_path):
    sink = begun(tmp_path)
    for checkpoint, number in ((1, 10), (2, 20)):
        parts = prepared(sink, checkpoint, n=[number, number + 1])
        for _ in range(3):
            sink.commit(checkpoint, parts)
        sink.commit(checkpoint, [])
    assert rows_of(tmp_path) == [(10,), (11,), (20,), (21,)]
    told = [snapshot.summary.additional_properties for snapshot in table_of(tmp_path).snapshots()]
    assert [(each["evenflow.job"], each["evenflow.checkpoint"]) for each in told] == [
        ("job/write_iceberg", "1"),
        ("job/write_iceberg", "2"),
    ]
    assert [value for name, value in table_of(tmp_path).properties.items() if name.startswith("evenflow.run.")] == ["2"]


def test_a_repeated_commit_is_recognised_after_its_snapshot_expired(tmp_path):
    sink = begun(tmp_path)
    parts = prepared(sink, 1, n=[1])
    sink.commit(1, parts)
    table = table_of(tmp_path)
    table.append(pa.table({"n": [2]}))
    table.maintenance.expire_snapshots().by_id(table.refresh().snapshots()[0].snapshot_id).commit()
    sink.commit(1, parts)
    assert rows_of(tmp_path) == [(1,), (2,)]


def test_another_run_adds_to_the_table_and_repeats_the_commits_of_the_one_before(tmp_path):
    first = begun(tmp_path)
    parts = prepared(first, 7, n=[1])
    first.commit(7, parts)
    second = begun(tmp_path)
    second.commit(7, parts)
    second.commit(8, prepared(second, 8, n=[2]))
    assert rows_of(tmp_path) == [(1,), (2,)]


def test_commits_of_others_are_kept_and_the_same_commit_of_two_processes_counts_once(tmp_path, monkeypatch):
    sink = begun(tmp_path)
    parts, other = prepared(sink, 1, n=[1]), begun(tmp_path)
    alone = committing.commit

    def commit(table, transaction):
        monkeypatch.setattr(committing, "commit", alone)
        other.commit(1, prepared(other, 1, n=[2]))
        other.commit(1, parts)
        alone(table, transaction)

    monkeypatch.setattr(committing, "commit", commit)
    monkeypatch.setattr(committing, "FIRST_PAUSE", 0)
    sink.commit(1, parts)
    assert rows_of(tmp_path) == [(1,), (2,)]


def test_a_reply_that_is_lost_after_the_commit_adds_nothing_twice(tmp_path, monkeypatch):
    sink = begun(tmp_path)
    alone = SqlCatalog.commit_table

    def commit(self, *arguments):
        alone(self, *arguments)
        monkeypatch.setattr(SqlCatalog, "commit_table", alone)
        raise CommitStateUnknownException("the gateway gave up")

    parts = prepared(sink, 1, n=[1])
    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    monkeypatch.setattr(committing, "FIRST_PAUSE", 0)
    sink.commit(1, parts)
    assert rows_of(tmp_path) == [(1,)]
    assert len(table_of(tmp_path).snapshots()) == 1


def test_a_catalog_that_never_answers_ends_the_job_with_the_name_of_the_table(tmp_path, monkeypatch):
    sink = begun(tmp_path)
    parts = prepared(sink, 1, n=[1])

    def commit(self, *arguments):
        raise CommitStateUnknownException("the gateway gave up")

    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    monkeypatch.setattr(committing, "FIRST_PAUSE", 0)
    with pytest.raises(ef.ConnectorError, match=r"shop\.rows of catalog `test` can't take checkpoint 1 \(12 tries\): CommitStateUnknown"):
        sink.commit(1, parts)


def test_rows_of_later_checkpoints_are_retracted(tmp_path):
    sink = begun(tmp_path)
    table_of(tmp_path)
    for checkpoint in (1, 2, 3):
        sink.commit(checkpoint, prepared(sink, checkpoint, n=[checkpoint]))
    table_of(tmp_path).append(pa.table({"n": [100]}))
    for _ in range(2):
        sink.retract(1)
    assert rows_of(tmp_path) == [(1,), (100,)]
    sink.commit(2, prepared(sink, 2, n=[22]))
    assert rows_of(tmp_path) == [(1,), (22,), (100,)]


def test_rows_that_can_not_be_taken_back_are_an_error(tmp_path):
    sink = begun(tmp_path)
    for checkpoint in (1, 2):
        sink.commit(checkpoint, prepared(sink, checkpoint, n=[checkpoint]))
    table = table_of(tmp_path)
    table.delete("n = 2")
    with pytest.raises(ef.ConnectorError, match=r"is no longer a file of the table shop.rows .*, because it was rewritten or deleted"):
        sink.retract(1)
    for snapshot in table.refresh().snapshots()[:-1]:
        table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    with pytest.raises(ef.ConnectorError, match=r"the snapshot of checkpoint 2 of the table shop.rows .* has expired"):
        sink.retract(1)


def test_new_columns_come_into_the_table_and_other_types_do_not(tmp_path):
    sink = begun(tmp_path)
    sink.commit(1, prepared(sink, 1, n=[1], later=pa.nulls(1)))
    sink.commit(2, prepared(sink, 2, n=pa.array([2], pa.int32()), later=["x"]))
    assert rows_of(tmp_path) == [(1, None), (2, "x")]
    with pytest.raises(ef.ConnectorError, match=r"column `n` is int64 in the table shop.rows .*, and string in the rows; cast\(\) it"):
        prepared(sink, 3, n=["three"], later=["x"])
    with pytest.raises(ef.ConnectorError, match=r"column `d` is duration\[us\]: Iceberg has no durations; cast it to int64"):
        prepared(sink, 3, d=pa.array([1], pa.duration("us")))
    with pytest.raises(ef.ConnectorError, match=r"no column of the rows has a type yet"):
        prepared(sink, 3, empty=pa.nulls(1))


def test_a_renamed_column_keeps_its_rows_and_a_dropped_one_is_an_error(tmp_path):
    sink = begun(tmp_path)
    sink.commit(1, prepared(sink, 1, n=[1], x=["a"]))
    parts = prepared(sink, 2, n=[2], x=["b"])
    with table_of(tmp_path).update_schema() as update:
        update.rename_column("x", "y")
    sink.commit(2, parts)
    table = table_of(tmp_path)
    assert table.schema().column_names == ["n", "y"]
    assert rows_of(tmp_path) == [(1, "a"), (2, "b")]
    parts = prepared(sink, 3, n=[3], y=["c"])
    with table.refresh().update_schema() as update:
        update.delete_column("y")
    with pytest.raises(ef.ConnectorError, match=r"column `y` of the table shop.rows .* was dropped while the job ran"):
        sink.commit(3, parts)


def test_a_table_that_is_dropped_or_recreated_ends_the_job(tmp_path):
    sink = begun(tmp_path)
    parts = prepared(sink, 1, n=[1])
    catalog = SqlCatalog("test", **catalog_options(tmp_path))
    catalog.drop_table("shop.rows")
    with pytest.raises(ef.ConnectorError, match=r"shop.rows of catalog `test` was dropped while the job ran; restore it"):
        sink.commit(1, parts)
    sink.of_run("abc", continues=True)
    with pytest.raises(ef.ConnectorError, match=r"shop.rows of catalog `test` was dropped"):
        sink.start()
    again = begun(tmp_path)
    with pytest.raises(ef.ConnectorError, match=r"the property evenflow.run.\w+ of the table shop.rows .* is missing"):
        sink.commit(1, parts)
    with pytest.raises(ef.ConnectorError, match=r"shop.rows of catalog `test` was dropped and recreated \(its id was"):
        again.commit(1, [{"files": [[parts[0]["files"][0][0], again._run, *parts[0]["files"][0][2:]]]}])


def test_files_that_are_lost_or_cut_are_named(tmp_path):
    sink = begun(tmp_path)
    parts = prepared(sink, 1, n=[1])
    path, whole = path_of(parts[0]), path_of(parts[0]).read_bytes()
    path.unlink()
    with pytest.raises(ef.ConnectorError, match=rf"{path.name} is missing, so its rows can't be committed"):
        sink.commit(1, parts)
    path.write_bytes(whole + whole)
    with pytest.raises(ef.ConnectorError, match=rf"{path.name} has .* bytes, and {len(whole):,} were written"):
        sink.commit(1, parts)


def test_a_writer_that_ends_removes_what_it_never_prepared(tmp_path):
    sink = begun(tmp_path)
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch({"n": [1]})))
    assert len([*tmp_path.rglob("*.parquet")]) == 1
    writer.close()
    assert not [*tmp_path.rglob("*.parquet")]


def test_tables_that_can_not_be_written(tmp_path):
    spec = PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="n"))
    created(tmp_path, Schema(NestedField(1, "n", LongType())), partition_spec=spec)
    with pytest.raises(ef.ConnectorError, match=r"shop.rows of catalog `test` is partitioned by n, which isn't supported"):
        begun(tmp_path)
    created(tmp_path, Schema(NestedField(1, "n", LongType(), required=True)), "shop.strict")
    sink = ef.write_iceberg("shop.strict", catalog="test", options=catalog_options(tmp_path))
    sink.start()
    with pytest.raises(ef.ConnectorError, match=r"column `n` of the table shop.strict .* is required, got None"):
        prepared(sink, 1, n=[1, None])
    with pytest.raises(ef.ConnectorError, match=r"column `n` of the table shop.strict .* is required, and the rows don't have it"):
        prepared(sink, 1, m=[1])
    sink.commit(1, prepared(sink, 1, n=[1]))
    assert rows_of(tmp_path, "shop.strict") == [(1, None)]


@pytest.mark.parametrize("store", ["gs://bucket/tables", "abfss://box@account.dfs.core.windows.net/tables", "hdfs://name/tables"])
def test_tables_in_stores_that_are_not_supported_are_refused_before_a_request(store, tmp_path):
    options = catalog_options(tmp_path) | {"warehouse": store}
    with pytest.raises(ef.ConnectorError, match=rf"the table shop.rows of catalog `test` is in {store}, .* use a warehouse on S3"):
        ef.write_iceberg("shop.rows", catalog="test", options=options).start()
    flow = ef.Dataflow("reading")
    flow.read(ef.read_iceberg("shop.rows", catalog="test", options=options)).write(ef.to_list([]))
    with pytest.raises(ef.EvenflowError, match=rf"`read_iceberg`: the table shop.rows of catalog `test` is in {store}"):
        flow.run(runtime="local").wait("60s")


def test_a_table_whose_own_location_is_not_supported_is_refused(tmp_path, monkeypatch):
    created(tmp_path, Schema(NestedField(1, "n", LongType())))
    monkeypatch.setattr(Table, "location", lambda table: "gs://bucket/shop/rows")
    with pytest.raises(ef.ConnectorError, match=r"is in gs://bucket/shop/rows"):
        begun(tmp_path)


def test_workers_add_the_same_columns_at_the_same_time(tmp_path):
    sink, problems = begun(tmp_path), []

    def write(number):
        try:
            prepared(sink, 1, n=[1], **{f"own_{number}": [1]})
        except ef.EvenflowError as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert sorted(table_of(tmp_path).schema().column_names) == ["n", "own_0", "own_1", "own_2"]


@pytest.mark.slow
def test_sink_holds_its_contract_whatever_crashes_when(tmp_path_factory):
    def begin():
        folder = tmp_path_factory.mktemp("iceberg")
        return sink_into(folder), lambda: table_of(folder).scan().to_arrow().to_pylist()

    check_sink(begin, seeds=range(2))
