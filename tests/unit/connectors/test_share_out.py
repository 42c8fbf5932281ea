"""Every source emits each record once with true watermarks, in any sequence of polls, reassignments and seeks."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded_sources import MAX_DELAY, Row, bids, csv, expected, generated, items, ndjson, number, parquet, started, streams, text
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StructField, StructType

from evenflow.connectors.exchange.exchange_folder import EndMarker, ExchangeFolder
from evenflow.connectors.files.splits import Split
from evenflow.connectors.formats.csv import CsvSource
from evenflow.connectors.generated.generate import generate
from evenflow.connectors.python.items import from_items
from evenflow.connectors.spark.source import SparkSource, from_spark
from evenflow.engine.errors import ConnectorError, FlowError
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME
from evenflow.engine.source import Source
from evenflow.engine.time.event_time import EventTime

BY_TIME = EventTime("ts", max_delay=MAX_DELAY * 1000)

polls = st.tuples(st.integers(0, 3), st.integers(1, 5))
shares = st.integers(1, 4)
steps = st.lists(polls | polls | shares, max_size=20)
"""A poll of a reader for at most so many rows, or a reassignment to so many readers."""

offsets = st.lists(st.integers(0, MAX_DELAY), max_size=8)
commits = st.lists(st.tuples(st.integers(0, 50), offsets), max_size=4)
"""The files of a micro-batch: the start of its event time, and the delay of each row."""


class CsvOfUnknownTimes(CsvSource):
    """A source that knows nothing of a file before it is read."""

    def _first_rows(self, split: Split) -> None:
        return None


def unknown_csv(folder: Path, files: list[list[Row]]) -> Source:
    csv(folder, files)
    return CsvOfUnknownTimes(folder, BY_TIME, {"ts": "int64", "n": "int64"}, ",", None, [""], "utf8", "infer", None, "read_csv")


every_source = pytest.mark.parametrize("build", [items, parquet, csv, unknown_csv, ndjson, text, generated, bids])


class Readers:
    """All readers of a source, and the rows that they emitted. Every poll and reassignment asserts the invariants."""

    def __init__(self, source: Source, parallelism: int, *, in_order: bool = True) -> None:
        self.source, self.in_order = source, in_order
        self.readers = [source.reader(index, parallelism) for index in range(parallelism)]
        self.bounds = [MIN_TIME] * parallelism
        self.given: list[list[int]] = [[] for _ in range(parallelism)]
        self.rows: list[int] = []

    def run(self, script: list[Any]) -> None:
        for step in script:
            self.share_out(step) if isinstance(step, int) else self.poll(*step)

    def poll(self, index: int, max_rows: int) -> None:
        index %= len(self.readers)
        reader = self.readers[index]
        watermark = reader.watermark()
        bound = max(self.bounds[index], watermark)
        batch = reader.poll(max_rows)
        if batch is not None:
            assert 0 < batch.num_rows <= max_rows
            assert batch.times is None or batch.times.min() >= bound
            self.given[index] += [number(row) for row in batch.to_rows()]
        assert reader.watermark() >= watermark
        self.bounds[index] = bound

    def share_out(self, parallelism: int) -> None:
        told = min(reader.watermark() for reader in self.readers)
        before = [through_a_checkpoint(reader.position()) for reader in self.readers]
        untouched = deepcopy(before)
        after = self.source.share_out(before, parallelism)
        assert before == untouched
        self.close()
        self.readers = [self.source.reader(index, parallelism) for index in range(parallelism)]
        for reader, position in zip(self.readers, after, strict=True):
            reader.seek(through_a_checkpoint(position))
            earliest = self.source.earliest(position)
            # A reader at the end of a log checks if it is still the end.
            assert reader.watermark() >= earliest or (earliest == MAX_TIME and not reader.finished)
        self.bounds = [self.source.earliest(position) for position in after]
        assert min(self.bounds) == min(map(self.source.earliest, before)) >= told
        assert all(self.source.earliest(reader.position()) == reader.watermark() for reader in self.readers)
        self.given = [[] for _ in range(parallelism)]

    def close(self) -> None:
        for reader, given_numbers in zip(self.readers, self.given, strict=True):
            reader.close()
            self.rows += given_numbers
            assert not self.in_order or all(first < second for first, second in pairwise(given_numbers))

    def drained(self) -> list[int]:
        """Read all readers to their end and return all emitted rows, sorted."""
        for _ in range(1000):
            if all(reader.finished for reader in self.readers):
                break
            for index in range(len(self.readers)):
                self.poll(index, 3)
        assert all(reader.finished and reader.watermark() == MAX_TIME for reader in self.readers)
        assert all(self.source.earliest(reader.position()) == MAX_TIME for reader in self.readers)
        self.close()
        return sorted(self.rows)


def through_a_checkpoint(position: Any) -> Any:
    return msgpack.unpackb(msgpack.packb(position))


def retimed(files: list[list[Row]], order: list[int]) -> list[list[Row]]:
    """Return the files in another order of event time."""
    return [[{**row, "ts": row["ts"] + 100 * (order[number] - number)} for row in rows] for number, rows in enumerate(files)]


@pytest.mark.few(2)
@every_source
@given(files=streams, order=st.permutations(range(5)), parallelism=st.integers(1, 4), script=steps)
def test_every_row_is_given_once_whatever_is_shared_out_when(build, tmp_path_factory, files, order, parallelism, script):
    input_files = files if build is items else retimed(files, order)
    readers = Readers(started(build, input_files, tmp_path_factory), parallelism, in_order=build not in (generated, bids))
    readers.run(script)
    assert readers.drained() == expected(build, files)


class Log:
    """An exchange folder into which a test commits, and the source that follows it."""

    def __init__(self, folder: Path, event_time: str | None) -> None:
        self.exchange, self.rows, self.batches = ExchangeFolder(folder), 0, 0
        self.exchange.create()
        schema = StructType([StructField("ts", LongType()), StructField("n", LongType())])
        frame: Any = SimpleNamespace(isStreaming=False, schema=schema, sparkSession=None)
        self.source: SparkSource = from_spark(frame, event_time=event_time, max_delay=MAX_DELAY / 1000, path=folder)

    def commit(self, files: list[tuple[int, list[int]]]) -> None:
        paths = [self.exchange.folder / f"{self.batches}-{place}.parquet" for place in range(len(files))]
        for path, (start, delays) in zip(paths, files, strict=True):
            times = [1_000 + 100 * self.batches + start + place - delay for place, delay in enumerate(delays)]
            ids = range(self.rows, self.rows + len(times))
            pq.write_table(pa.table({"ts": pa.array(times, pa.int64()), "n": pa.array(ids, pa.int64())}), path)
            self.rows += len(times)
        self.exchange.publish(self.batches, paths)
        self.batches += 1


@pytest.mark.few(1)
@pytest.mark.parametrize("event_time", [None, "ts"])
@given(script=st.lists(polls | polls | shares | commits, max_size=25), parallelism=st.integers(1, 4), after=steps)
def test_every_row_of_a_growing_log_is_given_once_whatever_is_shared_out_when(tmp_path_factory, event_time, script, parallelism, after):
    log = Log(tmp_path_factory.mktemp("log"), event_time)
    readers = Readers(log.source, parallelism)
    for step in script:
        log.commit(step) if isinstance(step, list) else readers.run([step])
    log.exchange.finish(EndMarker(log.batches - 1))
    readers.run(after)
    assert readers.drained() == list(range(log.rows))


def test_splits_that_only_some_readers_have_discovered_go_to_one(tmp_path):
    log = Log(tmp_path, "ts")
    log.commit([(0, [0, 0])])
    readers = Readers(log.source, 2)
    readers.poll(1, 1)
    log.commit([(0, [0]), (0, [0])])
    log.commit([(0, [0, 0, 0])])
    readers.run([(1, 1), 3, (0, 1), (1, 1), (2, 1), 2])
    log.commit([(0, [0]), (0, [0])])
    log.exchange.finish(EndMarker(3))
    assert readers.drained() == list(range(log.rows))


def test_several_splits_that_were_begun_go_on_in_one_reader_in_order(tmp_path_factory):
    files = [[{"ts": 1_000 + n, "n": 100 * file + n} for n in range(4)] for file in range(5)]
    readers = Readers(started(csv, files, tmp_path_factory), 3)
    readers.run([(0, 2), (1, 1), (2, 3), 1])
    assert readers.drained() == expected(csv, files)
    assert readers.given == [[2, 3, 101, 102, 103, 203, 300, 301, 302, 303, 400, 401, 402, 403]]


def test_event_time_waits_for_a_split_that_a_reader_takes_over(tmp_path_factory):
    files = [[{"ts": 1_000 * (3 - file) + n, "n": 100 * file + n} for n in range(4)] for file in range(3)]
    source = started(parquet, files, tmp_path_factory)
    first, second = source.reader(0, 2), source.reader(1, 2)
    first.poll(1)
    second.poll(1)
    [shared] = source.share_out([first.position(), second.position()], 1)
    assert source.earliest(shared) == first.watermark() == 1_000_000
    assert source.earliest(second.position()) == 2_000_000
    for reader in (first, second):
        reader.close()


@pytest.mark.parametrize("build", [text, items, generated, bids])
def test_a_position_at_the_end_has_no_earliest_time(build, tmp_path_factory):
    source = started(build, [[]], tmp_path_factory)
    positions = source.share_out([source.reader(0, 1).position()], 3)
    assert [source.earliest(position) for position in positions] == [MAX_TIME] * 3


def test_nothing_is_known_of_the_times_of_items_before_the_first():
    source = from_items([{"ts": 5}, {"ts": 6}], event_time="ts")
    reader = source.reader(0, 1)
    assert source.earliest(reader.position()) == MIN_TIME
    reader.poll(1)
    assert source.earliest(reader.position()) == 5_000


def test_a_stream_without_end_goes_on_with_every_row():
    readers = Readers(generate(), 2, in_order=False)
    readers.run([(0, 5), (0, 5), 3, (0, 4), (1, 4), (2, 4), 4, *[(index, 5) for index in range(4)] * 20])
    readers.close()
    assert len(set(readers.rows)) == len(readers.rows)
    assert set(range(100)) <= set(readers.rows)


def test_readers_that_were_shared_out_give_the_rate_together():
    now = [0.0]
    source = generate(rate=1000, clock=lambda: now[0])
    positions = source.share_out([source.reader(index, 2).position() for index in range(2)], 4)
    readers = [source.reader(index, 4) for index in range(4)]
    for reader, position in zip(readers, positions, strict=True):
        reader.seek(position)
    assert [reader.poll(8192) for reader in readers] == [None] * 4
    now[0] = 1.0
    assert sum(batch.num_rows for reader in readers for batch in polled(reader, 3)) == 1000


def polled(reader: Any, times: int) -> Iterator[Any]:
    return (batch for batch in (reader.poll(8192) for _ in range(times)) if batch is not None)


@pytest.mark.parametrize("build", [parquet, items, generated, bids])
def test_positions_of_some_readers_are_refused(build, tmp_path_factory):
    source = started(build, [[{"ts": 1, "n": 1}]], tmp_path_factory)
    with pytest.raises(FlowError, match=f"operator `{source.name}`: these 1 positions"):
        source.share_out([source.reader(0, 2).position()], 3)


def test_a_split_that_was_begun_and_is_gone_is_noticed(tmp_path_factory):
    files = [[{"ts": n, "n": n} for n in range(3)], [{"ts": n, "n": 100 + n} for n in range(3)]]
    before, now = started(csv, files, tmp_path_factory), started(csv, files[:1], tmp_path_factory)
    readers = [before.reader(index, 2) for index in range(2)]
    readers[1].poll(2)
    [position] = before.share_out([reader.position() for reader in readers], 1)
    again = now.reader(0, 1)
    again.seek(position)
    assert again.poll(5) is not None
    with pytest.raises(ConnectorError, match=r"after 2 rows of split 1, .*1\.csv, but that split no longer exists"):
        again.poll(5)
    for reader in (*readers, again):
        reader.close()
