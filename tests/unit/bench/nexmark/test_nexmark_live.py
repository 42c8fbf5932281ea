"""NexMark's events in real time are those of `ef.nexmark`, when they are due."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef
from evenflow.bench.nexmark.live import LiveEvents
from evenflow.engine.protocol.elements import MAX_TIME

NO_HOT = {"hot_seller_ratio": 1, "hot_auction_ratio": 1, "hot_bidder_ratio": 1}


class Clock:
    """A clock that the test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def given(reader, most=1000):
    batch = reader.poll(most)
    return [] if batch is None else batch.rows["seq"].to_pylist()


@pytest.mark.parametrize("stream", ["person", "auction", "bid"])
def test_all_rows_are_those_of_the_generator_whatever_the_number_of_readers(stream, clock, tmp_path):
    arguments = {"events": 1030, "rate": 500.0, "base_time": 1_000_000}
    plain = ef.nexmark(stream, events=1030, event_rate=500.0, base_time=1_000_000, **NO_HOT).reader(0, 1).poll(5000)
    clock.now += 60.0
    source = LiveEvents(stream, begun=1000.0, readers=2, clock=clock, **arguments)
    batches = [source.reader(index, 2).poll(5000) for index in range(2)]
    together = pa.Table.from_batches([batch.rows for batch in batches]).sort_by("seq")
    assert together.equals(pa.Table.from_batches([plain.rows]))
    assert sorted(time for batch in batches for time in batch.times.tolist()) == plain.times.tolist()
    source.write(tmp_path / stream)
    assert pq.read_table(tmp_path / stream).equals(together)


def test_events_are_emitted_when_they_are_due(clock):
    source = LiveEvents("bid", begun=1000.0, rate=50.0, events=100, clock=clock)
    reader = source.reader(0, 1)
    clock.now = 990.0
    assert (given(reader), reader.backlog(), source.rate) == ([], 0, 46.0)
    clock.now = 1000.1  # five events; the fifth is the first bid
    assert (reader.backlog(), given(reader), given(reader), reader.finished) == (1, [4], [], False)
    clock.now = 2000.0
    assert reader.backlog() == 91
    assert given(reader, 2) == [5, 6]
    assert len(given(reader)) == 89
    assert (reader.finished, reader.watermark(), reader.backlog()) == (True, MAX_TIME, 0)


def test_event_time_follows_the_clock_and_the_watermark_is_that_of_the_next_row(clock):
    source = LiveEvents("bid", begun=1000.0, rate=50.0, base_time=1_000_000, clock=clock)
    reader = source.reader(0, 1)
    assert reader.watermark() == 1_000_080_000
    clock.now = 1010.0
    batch = reader.poll(3)
    assert batch.times.tolist() == [1_000_080_000, 1_000_100_000, 1_000_120_000]
    assert reader.watermark() == 1_000_140_000


def test_a_reader_that_starts_again_emits_missed_rows_at_once(clock):
    source = LiveEvents("auction", begun=1000.0, rate=50.0, readers=2, clock=clock)
    first = source.reader(1, 2)
    clock.now = 1002.0
    assert given(first) == [2, 51, 53]
    again = source.reader(1, 2)
    again.seek(first.position())
    clock.now = 1004.0
    assert given(again) == [102, 151, 153]
