from __future__ import annotations

import datetime as dt
import os
import pickle
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from driving import batches_of, rows_of, wait_until
from java_classes import SUPPORT
from patience import patience
from pyspark.sql import SparkSession

from evenflow.connectors.exchange.exchange_folder import ExchangeFolder
from evenflow.connectors.spark.source import from_spark
from evenflow.engine.errors import ConnectorError, FlowError

WHEN = dt.datetime(2024, 2, 29, 12, 30, 0, 123456)
ALL_TYPES = {
    "flag": ("boolean", True),
    "tiny": ("tinyint", -1),
    "small": ("smallint", -300),
    "i": ("int", 70_000),
    "l": ("bigint", 2**40),
    "f": ("float", 1.5),
    "d": ("double", 0.1),
    "money": ("decimal(20,4)", Decimal("12345.6789")),
    "text": ("string", "žluťoučký"),
    "bytes": ("binary", b"\x00\xff"),
    "day": ("date", dt.date(1969, 12, 31)),
    "zoned": ("timestamp", WHEN.replace(tzinfo=dt.UTC)),
    "local": ("timestamp_ntz", WHEN),
    "took": ("interval day to second", dt.timedelta(days=1, microseconds=5)),
    "list": ("array<int>", [1, None]),
    "pair": ("struct<a:int,b:array<string>>", {"a": 1, "b": ["x", None]}),
    "map": ("map<string,bigint>", {"k": 7}),
    "waits": ("array<struct<t:interval day to second>>", [{"t": dt.timedelta(seconds=1)}]),
    "nothing": ("void", None),
}


def files(spark: SparkSession, folder: Path, count: int):
    """Return a streaming DataFrame that reads one small file per micro-batch: `n` counts from 0, three rows a file, one second
    per row.
    """
    folder.mkdir()
    for number in range(count):
        add_file(folder, number)
    return spark.readStream.schema("n long, ts timestamp").option("maxFilesPerTrigger", 1).parquet(str(folder))


def add_file(folder: Path, number: int) -> None:
    n = pa.array(range(number * 3, number * 3 + 3), pa.int64())
    ts = pa.array([value * 1_000_000 for value in n.to_pylist()], pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"n": n, "ts": ts}), folder / f".{number}")
    (folder / f".{number}").rename(folder / f"{number:04}.parquet")


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_batch_dataframe_arrives_once(spark, parallelism):
    source = from_spark(spark.range(10_000), max_rows_per_file=1_500)
    assert sorted(row["id"] for row in rows_of(source, parallelism)) == list(range(10_000))


def test_every_column_type_survives(spark):
    values = tuple(value for _, value in ALL_TYPES.values())
    declared = ", ".join(f"{name} {kind}" for name, (kind, _) in ALL_TYPES.items())
    df = spark.createDataFrame([values, (None,) * len(values)], declared).coalesce(1).selectExpr("*", "make_ym_interval(2, 3) as months")
    first, second = rows_of(from_spark(df))
    assert first == {name: value for name, (_, value) in ALL_TYPES.items()} | {"map": [("k", 7)], "months": 27}
    assert second == dict.fromkeys(ALL_TYPES) | {"months": 27}


def test_an_empty_dataframe_ends_at_once(spark):
    assert rows_of(from_spark(spark.range(0)), 2) == []


def test_event_times_come_from_the_column_and_the_watermark_from_statistics(spark):
    df = spark.sql("select timestamp_seconds(id) as ts, id from range(100)").repartition(4)
    source = from_spark(df, event_time="ts")
    source.start()
    reader = source.reader(0, 1)
    claimed = []
    for batch in batches_of(reader, 10):
        assert all(batch.times >= max(claimed, default=-1))
        assert batch.times.tolist() == [row["id"] * 1_000_000 for row in batch.to_rows()]
        claimed.append(reader.watermark())
        if len(claimed) == 1:
            break
    source.stop()
    assert claimed[0] <= 10_000_000  # unread files begin near 0, and their statistics say so


def test_a_streaming_dataframe_gives_each_micro_batch_once_also_past_compactions(spark, tmp_path):
    df = files(spark, tmp_path / "in", 23)
    source = from_spark(df, event_time="ts", trigger="availableNow", path=tmp_path / "exchange")
    assert sorted(row["n"] for row in rows_of(source, 2)) == list(range(69))
    exchange = ExchangeFolder(tmp_path / "exchange")
    assert exchange.latest() == 22
    assert (exchange.log / "19.compact").exists()
    for file in exchange.committed(22):  # INT96, Spark's default, would have none
        assert pq.read_metadata(file.path).row_group(0).column(1).statistics.has_min_max


def test_the_stream_goes_on_while_it_is_read_and_ends_when_the_query_is_stopped(spark, tmp_path):
    source = from_spark(files(spark, tmp_path / "in", 2), event_time="ts", trigger="100ms", max_delay="1s")
    source.start()
    readers = [source.reader(index, 2) for index in range(2)]
    seen: list[int] = []

    def read() -> int:
        for reader in readers:
            while (batch := reader.poll(100)) is not None:
                seen.extend(row["n"] for row in batch.to_rows())
        return len(seen)

    wait_until(lambda: read() == 6, "the first two files")
    wait_until(lambda: all(reader.poll(1) is None and reader.watermark() == 4_000_000 for reader in readers), "both watermarks")
    add_file(tmp_path / "in", 2)
    wait_until(lambda: read() == 9, "the file that came later")
    spark.streams.active[0].stop()
    wait_until(lambda: read() == 9 and all(reader.finished for reader in readers), "the end")
    assert sorted(seen) == list(range(9))
    assert source.failure() is None
    source.stop()


def test_a_stopped_and_restarted_query_neither_loses_nor_repeats_a_micro_batch(spark, tmp_path):
    df = files(spark, tmp_path / "in", 10)
    first = from_spark(df, path=tmp_path / "exchange")
    first.start()
    wait_until(lambda: (ExchangeFolder(tmp_path / "exchange").latest() or 0) >= 3, "the fourth micro-batch")
    first.stop()
    assert not spark.streams.active
    for number in range(10, 30):
        add_file(tmp_path / "in", number)
    again = from_spark(df, path=tmp_path / "exchange", trigger="availableNow")
    assert sorted(row["n"] for row in rows_of(again)) == list(range(90))


@pytest.mark.timeout(400)  # another Java machine starts
def test_a_query_whose_process_was_killed_neither_loses_nor_repeats_a_micro_batch(spark, tmp_path):
    df = files(spark, tmp_path / "in", 10)
    program = [sys.executable, str(Path(__file__).with_name("killed_query.py")), tmp_path / "work", tmp_path / "in", tmp_path / "exchange"]
    subprocess.run(program, env=os.environ | {"PYTHONPATH": SUPPORT}, check=True, timeout=patience(300), capture_output=True)
    killed_at = ExchangeFolder(tmp_path / "exchange").latest()
    assert 3 <= killed_at < 10
    for number in range(10, 40):
        add_file(tmp_path / "in", number)
    again = from_spark(df, path=tmp_path / "exchange", trigger="availableNow")
    assert sorted(row["n"] for row in rows_of(again, 2)) == list(range(120))


def test_a_reader_goes_on_from_its_position(spark, tmp_path):
    source = from_spark(files(spark, tmp_path / "in", 12), event_time="ts", trigger="availableNow", path=tmp_path / "exchange")
    source.start()
    reader, seen = source.reader(1, 2), []
    for batch in batches_of(reader, 2):
        seen += [row["n"] for row in batch.to_rows()]
        position = reader.position()
        reader = source.reader(1, 2)
        reader.seek(position)
    source.stop()
    assert sorted(seen) == sorted(set(seen))
    other = source.reader(0, 2)
    assert sorted(seen + [row["n"] for batch in batches_of(other) for row in batch.to_rows()]) == list(range(36))


def test_the_source_that_workers_get_contains_no_spark(spark):
    source = from_spark(spark.range(3))
    copy = pickle.loads(pickle.dumps(source))
    source.start()
    assert b"pyspark" not in pickle.dumps(source)
    assert [row["id"] for batch in batches_of(copy.reader(0, 1)) for row in batch.to_rows()] == [0, 1, 2]
    source.stop()


def test_settings_of_the_session_are_put_back(spark):
    before = spark.conf.get("spark.sql.parquet.outputTimestampType")
    rows_of(from_spark(spark.range(3)))
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == before


def test_a_failing_query_is_named_by_source_and_readers(spark, tmp_path):
    source = from_spark(spark.range(5).selectExpr("raise_error('no luck') as x", "id").selectExpr("cast(x as int) x", "id"))
    source.start()
    reader = source.reader(0, 1)
    with pytest.raises(ConnectorError, match="no luck"):
        list(batches_of(reader))
    assert "no luck" in source.failure()
    source.stop()


def test_a_failing_streaming_query_is_named_by_source_and_readers(spark, tmp_path):
    df = files(spark, tmp_path / "in", 1).selectExpr("if(n = 1, raise_error('no luck'), n) as n")
    source = from_spark(df)
    source.start()
    with pytest.raises(ConnectorError, match="no luck"):
        list(batches_of(source.reader(0, 1)))
    assert "no luck" in source.failure()
    source.stop()


def test_a_failed_streaming_query_resumes_from_its_checkpoint_while_it_makes_progress(spark, tmp_path, caplog):
    source = from_spark(files(spark, tmp_path / "in", 1), event_time="ts", path=tmp_path / "exchange")
    source.start()
    reader, seen = source.reader(0, 1), []

    def read() -> int:
        while (batch := reader.poll(100)) is not None:
            seen.extend(row["n"] for row in batch.to_rows())
        return len(seen)

    def fail_or_get_on(query) -> bool:
        spark.sparkContext.cancelJobGroup(str(query.runId))
        return not query.isActive or read() == 3 * number

    number, failures = 1, 0
    while failures < 4:  # more than may be consecutive
        wait_until(lambda number=number: read() == 3 * number and spark.streams.active, "all files so far")
        (query,) = spark.streams.active
        add_file(tmp_path / "in", number)
        number += 1
        wait_until(lambda query=query: fail_or_get_on(query), "a micro-batch, or its end", every=0.02)  # many tries to meet a job
        failures += query.exception() is not None
    wait_until(lambda: read() == 3 * number, "the last file")
    source.stop()
    assert source.failure() is None
    assert seen == list(range(3 * number))
    assert caplog.text.count("Spark's query has failed and is restarted") == failures


def test_a_job_that_ends_early_ends_the_writing_too(spark):
    source = from_spark(spark.range(10**12).selectExpr("sum(hash(id)) as h"))
    source.start()
    reader = source.reader(0, 1)
    assert reader.poll(1) is None
    source.stop()
    assert source.failure() is None
    of_process = "evenflow-sigterm"  # stays for other jobs
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("evenflow") and thread.name != of_process]
    assert spark.range(3).count() == 3


def test_stopping_a_source_that_was_never_started_does_nothing(spark):
    from_spark(spark.range(3)).stop()


def test_a_missing_event_time_column_is_found_before_spark_starts(spark):
    with pytest.raises(ConnectorError, match="operator `clicks`: no event time column `ts`; there are: id"):
        from_spark(spark.range(3), event_time="ts", name="clicks").start()


def test_a_column_that_arrow_lacks_is_named(spark):
    with pytest.raises(ConnectorError, match=r"column `v` is variant.*to_json"):
        from_spark(spark.sql("select parse_json('1') as v"))


def test_a_folder_with_data_is_not_written_again(spark, tmp_path):
    rows_of(from_spark(spark.range(3), path=tmp_path))
    with pytest.raises(ConnectorError, match="holds data already"):
        from_spark(spark.range(4), path=tmp_path).start()
    assert len(rows_of(from_spark(spark.range(3), path=tmp_path, reuse=True))) == 3


def test_a_folder_of_another_query_is_refused(spark, tmp_path):
    df = files(spark, tmp_path / "in", 2)
    rows_of(from_spark(df, path=tmp_path / "exchange", trigger="availableNow"))
    with pytest.raises(ConnectorError, match="whose checkpoint is not in"):
        from_spark(df, path=tmp_path / "exchange", checkpoint=str(tmp_path / "new")).start()
    with pytest.raises(ConnectorError, match="did not write into"):
        from_spark(df, path=tmp_path / "elsewhere", checkpoint=str(tmp_path / "exchange/_evenflow/checkpoint")).start()


def test_options_of_streams_are_refused_for_a_batch(spark):
    with pytest.raises(FlowError, match="trigger= is for streaming"):
        from_spark(spark.range(3), trigger="1s")


def test_a_corrupt_file_and_a_missing_one_are_named(spark, tmp_path):
    source = from_spark(spark.range(3).coalesce(1), path=tmp_path)
    rows_of(source)
    (file,) = ExchangeFolder(tmp_path).committed(0)
    Path(file.path).write_bytes(b"PAR1 this is not it PAR1")
    with pytest.raises(ConnectorError, match=f"{file.path} can't be read as Parquet"):
        source.reader(0, 1).poll(10)
    Path(file.path).unlink()
    with pytest.raises(ConnectorError, match=f"{file.path} does not exist"):
        source.reader(0, 1).poll(10)
