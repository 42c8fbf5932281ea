from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from driving import rows_of, wait_until

from evenflow.connectors.spark.sink import SparkSink, to_spark
from evenflow.connectors.spark.source import from_spark
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ConnectorError, FlowError

WHEN = dt.datetime(2024, 2, 29, 12, 30, 0, 123456)


def commit(sink: SparkSink, checkpoint: int, *workers: dict[str, list[object]] | pa.RecordBatch) -> None:
    """Run one checkpoint: each worker writes a batch, the coordinator commits with a copy of the sink, the driver gets the
    result.
    """
    coordinator = pickle.loads(pickle.dumps(sink))
    committables = []
    for index, rows in enumerate(workers):
        writer = coordinator.writer(index, len(workers))
        writer.write(Batch(rows if isinstance(rows, pa.RecordBatch) else pa.record_batch(rows)))
        committables += writer.prepare(checkpoint)
    for payload in coordinator.commit(checkpoint, committables):
        sink.deliver(payload)


def test_batch_and_streaming_readers_see_exactly_the_committed_rows_past_compactions(spark, tmp_path):
    sink = to_spark(path=tmp_path / "out")
    sink.start()
    commit(sink, 1, {"n": [0]}, {"n": [100]})
    uncommitted = sink.writer(5, 6)
    uncommitted.write(Batch(pa.record_batch({"n": [-1]})))
    never_completed = sink.writer(4, 6)
    never_completed.write(Batch(pa.record_batch({"n": [-2]})))
    never_completed.prepare(1)
    (tmp_path / "out" / "part-00000-lost.parquet").write_bytes(b"PAR1 half of a file")
    query = spark.readStream.schema("n long").parquet(str(tmp_path / "out")).writeStream.format("memory").queryName("seen").start()
    try:
        query.processAllAvailable()
        assert sorted(row.n for row in spark.table("seen").collect()) == [0, 100]
        for checkpoint in range(2, 26):
            commit(sink, checkpoint, {"n": [checkpoint]}, {"n": [100 + checkpoint]})
        query.processAllAvailable()
        expected = [0, *range(2, 26), 100, *range(102, 126)]
        assert sorted(row.n for row in spark.table("seen").collect()) == expected
        assert sorted(row.n for row in spark.read.parquet(str(tmp_path / "out")).collect()) == expected
    finally:
        query.stop()
        uncommitted.close()
    assert sorted(path.name for path in (tmp_path / "out/_spark_metadata").glob("*.compact")) == ["19.compact", "9.compact"]


def test_every_column_type_survives(spark, tmp_path):
    columns = {
        "flag": pa.array([True]),
        "small": pa.array([-1], pa.int8()),
        "unsigned": pa.array([2**64 - 1], pa.uint64()),
        "f": pa.array([1.5], pa.float32()),
        "d": pa.array([0.1]),
        "money": pa.array([Decimal("12.50")], pa.decimal128(10, 2)),
        "text": pa.array(["žluť"]),
        "word": pa.array(["a"]).dictionary_encode(),
        "bytes": pa.array([b"\x00"]),
        "day": pa.array([WHEN.date()]),
        "zoned": pa.array([WHEN.replace(tzinfo=dt.UTC)], pa.timestamp("ns", tz="Europe/Prague")),
        "local": pa.array([WHEN], pa.timestamp("ns")),
        "seconds": pa.array([1], pa.timestamp("s")),
        "list": pa.array([[1, None]]),
        "pair": pa.array([{"a": 1, "b": ["x"]}]),
        "map": pa.array([[("k", 7)]], pa.map_(pa.string(), pa.int64())),
        "inner": pa.array([[{"t": WHEN}]], pa.list_(pa.struct([("t", pa.timestamp("ns"))]))),
        "took": pa.array([5_000], pa.duration("ns")),
    }
    sink = to_spark(path=tmp_path / "out")
    sink.start()
    commit(sink, 1, pa.record_batch(columns))
    df = spark.read.parquet(str(tmp_path / "out"))
    (row,) = df.selectExpr("* except (zoned)", "unix_micros(zoned) as zoned").collect()
    expected = {name: column.to_pylist()[0] for name, column in columns.items()}
    expected |= {"local": WHEN, "inner": [{"t": WHEN}], "map": {"k": 7}, "took": 5}
    expected["zoned"] = pa.array([WHEN], pa.timestamp("us")).view(pa.int64())[0].as_py()
    assert row.asDict(recursive=True) == expected


@pytest.mark.first
def test_rows_go_from_spark_through_files_to_spark(spark, tmp_path):
    sink = to_spark(path=tmp_path / "out")
    sink.start()
    rows = rows_of(from_spark(spark.sql("select id, timestamp_seconds(id) as ts, id / 8 as x from range(5000)")))
    commit(sink, 1, pa.RecordBatch.from_pylist(rows[:3000]), pa.RecordBatch.from_pylist(rows[3000:]))
    again = (
        spark.read.parquet(str(tmp_path / "out"))
        .selectExpr("sum(id) as n", "sum(x) as x", "max(ts) = timestamp_seconds(4999) as newest")
        .first()
    )
    assert again.asDict() == {"n": 4999 * 2500, "x": 4999 * 2500 / 8, "newest": True}


def test_each_checkpoint_is_handed_to_the_function_once_and_in_order(spark):
    got: list[tuple[int, list[int]]] = []
    sink = to_spark(spark, foreach_batch=lambda df, batch: got.append((batch, sorted(row.n for row in df.collect()))))
    sink.start()
    commit(sink, 3, {"n": [1]}, {"n": [2]})
    commit(sink, 4)
    commit(sink, 7, {"n": [3]})
    sink.deliver(1)
    assert got == [(0, [1, 2]), (1, [3])]
    sink.stop()
    assert not sink.folder.exists()


def test_the_next_driver_hands_over_what_a_lost_one_did_not(spark, tmp_path):
    first = to_spark(spark, foreach_batch=lambda df, batch: None, path=tmp_path)
    first.start()
    commit(first, 1, {"n": [1]})
    coordinator = pickle.loads(pickle.dumps(first))
    writer = coordinator.writer(0, 1)
    writer.write(Batch(pa.record_batch({"n": [2]})))
    assert coordinator.commit(2, writer.prepare(2)) == [1]  # and the driver is lost
    got: list[tuple[int, int]] = []
    to_spark(spark, foreach_batch=lambda df, batch: got.append((batch, df.first().n)), path=tmp_path, append=True).start()
    assert got == [(1, 2)]


def test_an_error_of_the_function_names_the_batch(spark):
    def fail(df: object, batch: int) -> None:
        raise ValueError("no luck")

    sink = to_spark(spark, foreach_batch=fail, name="out")
    sink.start()
    with pytest.raises(ConnectorError, match="operator `out`: batch 0 could not be delivered: ValueError: no luck"):
        commit(sink, 1, {"n": [1]})
    sink.stop()


def test_a_table_is_made_and_then_added_to(spark):
    sink = to_spark(spark, table="results")
    sink.start()
    commit(sink, 1, {"n": [1], "x": [0.5]})
    commit(sink, 2, pa.record_batch({"n": [2], "x": pa.nulls(1)}))
    sink.stop()
    assert sorted(tuple(row) for row in spark.table("results").collect()) == [(1, 0.5), (2, None)]
    more = to_spark(spark, table="results")
    more.start()
    commit(more, 1, {"x": [3.5], "n": [3]})
    with pytest.raises(ConnectorError, match="table results has no column `y`"):
        commit(more, 2, {"x": [3.5], "n": [3], "y": [1]})
    more.stop()
    assert sorted(row.n for row in spark.table("results").collect()) == [1, 2, 3]
    spark.sql("drop table results")


def test_a_column_that_gets_its_type_later_is_read_as_null_before(spark, tmp_path):
    sink = to_spark(path=tmp_path)
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch({"n": [1], "late": pa.nulls(1)})))
    sink.commit(1, writer.prepare(1))
    writer.write(Batch(pa.record_batch({"n": [2], "late": ["now"]})))
    writer.write(Batch(pa.record_batch({"n": [3], "late": pa.nulls(1)})))
    sink.commit(2, writer.prepare(2))
    rows = spark.read.option("mergeSchema", "true").parquet(str(tmp_path)).orderBy("n").collect()
    assert [tuple(row) for row in rows] == [(1, None), (2, "now"), (3, None)]


def test_a_stream_of_spark_follows_the_sink_while_it_runs(spark, tmp_path):
    sink = to_spark(path=tmp_path / "out")
    sink.start()
    query = spark.readStream.schema("n long").parquet(str(tmp_path / "out")).writeStream.format("memory").queryName("follows").start()
    try:
        for checkpoint in range(3):
            commit(sink, checkpoint, {"n": [checkpoint]})
            wait_until(lambda: spark.table("follows").count() == checkpoint + 1, "the query to see the checkpoint")  # noqa: B023 -- asked at once
    finally:
        query.stop()


def test_a_sink_without_a_place_is_refused():
    with pytest.raises(FlowError, match="choose the destination of the rows"):
        to_spark()


def test_two_receivers_are_refused():
    with pytest.raises(FlowError, match="choose one of table= and foreach_batch="):
        to_spark(table="t", foreach_batch=lambda df, batch: None)


def test_files_that_no_log_names_keep_their_readers(tmp_path: Path):
    (tmp_path / "old.parquet").touch()
    with pytest.raises(ConnectorError, match="files without a log"):
        to_spark(path=tmp_path, append=True).start()


@pytest.mark.parametrize(
    ("kind", "fits", "lost"),
    [
        ("float", [0.1, float("inf"), float("nan"), None], 1e300),
        ("int", [2.0, None], 2.5),
        ("double", [1, None], 2**53 + 1),
        ("smallint", [-(2**15)], 2**15),
        ("date", [dt.datetime(2024, 2, 29), None], WHEN),
        ("decimal(10, 1)", [Decimal("1.50")], Decimal("1.25")),
        ("array<float>", [[1.5], [], None], [1e300]),
    ],
)
def test_a_value_that_would_change_in_the_type_of_a_table_is_refused_by_name(spark, kind, fits, lost):
    spark.sql(f"create table typed (n int, x {kind}) using parquet")
    sink = to_spark(spark, table="typed", name="out")
    sink.start()
    try:
        commit(sink, 1, pa.record_batch({"n": pa.array(range(len(fits)), pa.int32()), "x": pa.array(fits)}))
        assert spark.table("typed").count() == len(fits)
        with pytest.raises(ConnectorError, match=r"operator `out`: column `x` is .* in table typed, which would change .*; give the rows"):
            commit(sink, 2, pa.record_batch({"n": pa.array([1], pa.int32()), "x": pa.array([lost])}))
        assert spark.table("typed").count() == len(fits)
    finally:
        sink.stop()
        spark.sql("drop table typed")


def test_a_batch_of_an_earlier_run_with_other_types_is_refused(spark, tmp_path):
    rows_of(from_spark(spark.sql("select 1e300D as x"), path=tmp_path / "in"))
    with pytest.raises(ConnectorError, match=r"column `x` of .* isn't float, as the DataFrame says: 1e\+300 is too large for float"):
        rows_of(from_spark(spark.sql("select float(1) as x"), path=tmp_path / "in", reuse=True))
