from __future__ import annotations

from pathlib import Path

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.exchange.exchange_folder import EndMarker, ExchangeFolder
from evenflow.connectors.spark.tail import TailReader
from evenflow.engine.errors import ConnectorError
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME
from evenflow.engine.time.event_time import EventTime

SCHEMA = pa.schema({"t": pa.int64()})
BY_TIME = EventTime("t", unit="us", max_delay=5)


@pytest.fixture
def exchange(tmp_path: Path) -> ExchangeFolder:
    made = ExchangeFolder(tmp_path)
    made.create()
    return made


def commit(exchange: ExchangeFolder, *files: list[int]) -> None:
    number = (-1 if (latest := exchange.latest()) is None else latest) + 1
    paths = [exchange.folder / f"{number}-{place}.parquet" for place in range(len(files))]
    for path, times in zip(paths, files, strict=True):
        pq.write_table(pa.table({"t": pa.array(times, pa.int64())}), path)
    exchange.publish(number, paths)


def reader_of(exchange: ExchangeFolder, index: int = 0, parallelism: int = 1, event_time: EventTime | None = BY_TIME) -> TailReader:
    return TailReader(exchange, SCHEMA, operator="tail", index=index, parallelism=parallelism, event_time=event_time)


def drained(reader: TailReader) -> list[int]:
    times: list[int] = []
    while (batch := reader.poll(2)) is not None:
        times += batch.rows.column("t").to_pylist()
    return times


def test_batches_are_read_as_they_are_committed(exchange: ExchangeFolder):
    reader = reader_of(exchange)
    assert drained(reader) == []
    commit(exchange, [1, 2, 3], [4])
    assert drained(reader) == [1, 2, 3, 4]
    commit(exchange)
    commit(exchange, [5])
    assert drained(reader) == [5]
    assert not reader.finished


def test_a_folder_that_is_not_there_yet_is_waited_for(tmp_path: Path):
    reader = reader_of(ExchangeFolder(tmp_path / "later"))
    assert reader.poll(1) is None
    assert not reader.finished
    assert reader.ready_in() > 0
    made = ExchangeFolder(tmp_path / "later")
    made.create()
    commit(made, [1])
    assert drained(reader) == [1]


def test_a_worker_without_a_file_in_a_batch_has_its_watermark_move_on(exchange: ExchangeFolder):
    reader = reader_of(exchange, index=3, parallelism=4)
    assert (reader.poll(1), reader.watermark()) == (None, MIN_TIME)
    commit(exchange, [10, 100], [50])
    assert (reader.poll(1), reader.watermark()) == (None, 95)


def test_own_files_that_are_listed_hold_the_watermark_back(exchange: ExchangeFolder):
    commit(exchange, [100, 110], [7, 8])
    reader = reader_of(exchange)
    reader.poll(1)
    assert reader.watermark() == 7


def test_the_end_marker_ends_it_after_its_last_batch(exchange: ExchangeFolder):
    commit(exchange, [1])
    exchange.finish(EndMarker(0))
    for reader in (reader_of(exchange), reader_of(exchange, 1, 2)):
        drained(reader)
        assert reader.finished
        assert reader.watermark() == MAX_TIME


def test_an_end_before_the_first_batch_is_an_end(exchange: ExchangeFolder):
    exchange.finish(EndMarker(-1))
    reader = reader_of(exchange)
    assert drained(reader) == []
    assert reader.finished


def test_a_failure_is_raised_with_its_text(exchange: ExchangeFolder):
    exchange.finish(EndMarker(-1, "out of luck"))
    with pytest.raises(ConnectorError, match="operator `tail`: Spark failed: out of luck"):
        reader_of(exchange).poll(1)


def test_a_batch_that_is_missing_in_the_middle_is_named(exchange: ExchangeFolder):
    for number in range(3):
        commit(exchange, [number])
    (exchange.log / "1").unlink()
    with pytest.raises(ConnectorError, match=r"batch 1 is missing in .*, though the log continues to batch 2"):
        drained(reader_of(exchange))


def test_a_last_batch_that_is_missing_is_named(exchange: ExchangeFolder):
    commit(exchange, [1])
    exchange.finish(EndMarker(1))
    with pytest.raises(ConnectorError, match=r"batch 1 is missing"):
        drained(reader_of(exchange))


def test_a_damaged_log_is_named(exchange: ExchangeFolder):
    (exchange.log / "0").write_text("v1\n{")
    with pytest.raises(ConnectorError, match="_spark_metadata/0, line 2"):
        reader_of(exchange).poll(1)


@pytest.mark.parametrize("event_time", [None, BY_TIME])
def test_a_committed_file_that_is_missing_or_damaged_is_named(exchange: ExchangeFolder, event_time: EventTime | None):
    commit(exchange, [1])
    path = exchange.folder / "0-0.parquet"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ConnectorError, match=r"0-0\.parquet can't be read as Parquet"):
        reader_of(exchange, event_time=event_time).poll(1)
    path.unlink()
    with pytest.raises(ConnectorError, match=r"0-0\.parquet does not exist"):
        reader_of(exchange, event_time=event_time).poll(1)


def test_a_position_names_the_first_batch_that_is_not_read_to_its_end(exchange: ExchangeFolder):
    for number in range(4):
        commit(exchange, [number], [number, number])
    reader = reader_of(exchange, index=1, parallelism=2)
    seen = []
    while (batch := reader.poll(1)) is not None:
        seen.append((batch.rows.column("t").to_pylist()[0], reader.position()["batch"]))
    assert seen == [(0, 0), (0, 0), (1, 1), (1, 1), (2, 2), (2, 2), (3, 3), (3, 3)]
    assert reader.position()["batch"] == 4


@given(
    st.lists(st.lists(st.lists(st.integers(0, 100), max_size=4), max_size=4), max_size=13), st.integers(1, 3), st.lists(st.integers(0, 3))
)
def test_readers_that_are_made_again_at_any_time_read_everything_once(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[list[int]]], parallelism: int, stops: list[int]
):
    exchange = ExchangeFolder(tmp_path_factory.mktemp("exchange"))
    exchange.create()
    readers = [reader_of(exchange, index, parallelism, None) for index in range(parallelism)]
    seen: list[int] = []
    pending = list(stops)
    for files in batches:
        commit(exchange, *files)
        for index in range(parallelism):
            for _ in range(pending.pop() if pending else 2):
                if (batch := readers[index].poll(1)) is not None:
                    seen += batch.rows.column("t").to_pylist()
            position = msgpack.unpackb(msgpack.packb(readers[index].position()))
            readers[index].close()
            readers[index] = reader_of(exchange, index, parallelism, None)
            readers[index].seek(position)
    for reader in readers:
        seen += drained(reader)
    assert sorted(seen) == sorted(time for files in batches for times in files for time in times)
