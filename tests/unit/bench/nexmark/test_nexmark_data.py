from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef
from evenflow.bench.nexmark.data import BLOCK, CSV_FILES, PARQUET_FILES, files_of, make
from evenflow.bench.nexmark.streams import INPUTS, read_events, streams_of
from evenflow.cli import main
from evenflow.connectors.nexmark.schemas import SCHEMAS
from evenflow.connectors.nexmark.settings import NexmarkSettings
from evenflow.connectors.nexmark.source import EVENT_RATE, STREAMS, nexmark

EVENTS = 5_000


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def files(cache):
    return make(cache, EVENTS, lambda _: None)


def generated(stream):
    return nexmark(stream, events=EVENTS).reader(0, 1).poll(EVENTS).rows


@pytest.mark.parametrize("stream", STREAMS)
def test_parquet_files_have_all_events_in_order(stream, files):
    parts = [pq.read_table(path) for path in sorted(files.of("parquet", stream).iterdir())]
    assert len(parts) == PARQUET_FILES
    assert pa.concat_tables(parts).combine_chunks().to_batches()[0].equals(generated(stream))
    assert files.rows(stream) == generated(stream).num_rows


@pytest.mark.parametrize("stream", STREAMS)
def test_csv_files_have_every_other_block_of_events_so_that_two_readers_are_at_the_same_time(stream, files):
    for number in range(CSV_FILES):
        lines = files.of("csv", stream).joinpath(f"{number:03}.csv").read_text().splitlines()
        seq = [int(line.rpartition(",")[2]) for line in lines]
        assert seq == [n for n in generated(stream)["seq"].to_pylist() if n // BLOCK % CSV_FILES == number]


def test_events_of_one_time_are_in_one_csv_file():
    numbers = np.arange(10 * BLOCK)
    times = NexmarkSettings(0, 0, EVENT_RATE, 1, 1, 1).times(numbers)
    in_file = numbers // BLOCK % CSV_FILES
    assert not set(times[in_file == 0].tolist()) & set(times[in_file == 1].tolist())


def test_a_csv_line_is_what_flink_reads(files):
    line, *_ = files.of("csv", "bid").joinpath("000.csv").read_text().splitlines()
    row = generated("bid").slice(0, 1).to_pylist()[0]
    values = {**row, "dateTime": int(row["dateTime"].timestamp() * 1000)}
    assert line == ",".join(map(str, values.values()))


@pytest.mark.usefixtures("waiting_for_jobs")
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("form", INPUTS)
def test_every_input_has_the_same_rows(form, stream, files):
    flow, rows = ef.Dataflow("read"), []
    getattr(read_events(flow, files, form), stream).map_batches(lambda batch: _checked(batch, stream)).write(ef.to_list(rows))
    flow.run(runtime="local", config=ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(interval=None))).wait()
    assert sorted(rows, key=lambda row: row["seq"]) == generated(stream).to_pylist()


def _checked(batch, stream):
    assert batch.schema.equals(SCHEMAS[stream])
    return batch


@pytest.mark.usefixtures("waiting_for_jobs")
@pytest.mark.parametrize("form", INPUTS)
def test_event_time_is_that_of_the_events(form, files):
    flow, rows = ef.Dataflow("count"), []
    windows = read_events(flow, files, form).bid.window(ef.tumbling("100ms"))
    windows.aggregate(n=ef.count(), first=ef.min("dateTime"), last=ef.max("dateTime")).write(ef.to_list(rows))
    flow.run(runtime="local").wait()
    assert [row["n"] for row in rows] == [920] * 5
    assert all(row["window_start"] <= row["first"] <= row["last"] < row["window_end"] for row in rows)


def test_existing_files_are_not_written_again(files, cache):
    said = []
    before = files.of("csv", "bid").joinpath("000.csv").stat().st_mtime_ns
    assert make(cache, EVENTS, said.append) == files == files_of(cache, EVENTS)
    assert files.of("csv", "bid").joinpath("000.csv").stat().st_mtime_ns == before
    assert not said


def test_incomplete_files_are_written_again(tmp_path):
    (tmp_path / "nexmark-50" / "csv" / "bid").mkdir(parents=True)
    (tmp_path / "nexmark-50" / "csv" / "bid" / "999.csv").write_text("half a li")
    made = make(tmp_path, 50, lambda _: None)
    assert len(list(made.of("csv", "bid").iterdir())) == CSV_FILES


@pytest.mark.parametrize(("query", "streams"), [("q0", ["bid"]), ("q3", ["person", "auction"]), ("q9", ["auction", "bid"])])
def test_only_what_a_query_reads_counts_as_its_rows(query, streams):
    assert streams_of(query) == streams


def test_the_command_writes_the_files_and_describes_them(tmp_path, capsys):
    assert main(["bench", "data", "nexmark", "--events", "500", "--folder", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "nexmark-500: 10 of person, 30 of auction, 460 of bid, as CSV and Parquet" in " ".join(told.out.split())
    assert "bid: 460 of 460 rows" in told.err
    assert make(tmp_path, 500, lambda _: None) == files_of(tmp_path, 500)
