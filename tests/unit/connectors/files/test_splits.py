from __future__ import annotations

from collections.abc import Iterator

import msgpack
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.files.splits import Split, SplitReader
from evenflow.engine.errors import ConnectorError
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME
from evenflow.engine.time.event_time import EventTime

MAX_DELAY = 5
BY_TIME = EventTime("t", unit="us", max_delay=MAX_DELAY)

Files = list[list[int]]

files_of_times = st.lists(st.lists(st.integers(0, MAX_DELAY), max_size=8), max_size=7).map(
    lambda files: [[100 * number + place - delay for place, delay in enumerate(delays)] for number, delays in enumerate(files)]
)


def splits_of(files: Files, known: bool = True) -> list[Split]:
    return [
        Split(str(number), number, min_time=min(times, default=MAX_TIME), max_time=max(times, default=MIN_TIME))
        if known
        else Split(str(number), number)
        for number, times in enumerate(files)
    ]


def reader_of(files: Files, *, index: int = 0, parallelism: int = 1, known: bool = True, splits: list[Split] | None = None) -> SplitReader:
    def open_split(split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"t": pa.array(files[int(split.path)], pa.int64())})

    given_splits = splits_of(files, known) if splits is None else splits
    return SplitReader("read", given_splits, open_split, index=index, parallelism=parallelism, event_time=BY_TIME)


def drained(reader: SplitReader, max_rows: int = 3) -> list[int]:
    times: list[int] = []
    while (batch := reader.poll(max_rows)) is not None:
        assert 0 < batch.num_rows <= max_rows
        times += batch.times.tolist()
    assert reader.finished
    return times


@given(files_of_times, st.integers(1, 4))
def test_workers_together_read_every_row_once(files: Files, parallelism: int):
    shares = [drained(reader_of(files, index=index, parallelism=parallelism)) for index in range(parallelism)]
    assert shares == [
        [time for number, times in enumerate(files) if number % parallelism == index for time in times] for index in range(parallelism)
    ]


@given(st.permutations(range(6)), files_of_times, st.booleans(), st.integers(1, 4), st.integers(1, 2))
def test_the_watermark_is_below_all_that_follows_and_never_falls(
    order: list[int], files: Files, known: bool, max_rows: int, parallelism: int
):
    files = [files[number] for number in order if number < len(files)]
    reader = reader_of(files, parallelism=parallelism, known=known)
    claims = [(0, reader.watermark())]
    times: list[int] = []
    while (batch := reader.poll(max_rows)) is not None:
        times += batch.times.tolist()
        claims.append((len(times), reader.watermark()))
    assert all(claim <= min(times[given:], default=MAX_TIME) for given, claim in claims)
    assert [claim for _, claim in claims] == sorted(claim for _, claim in claims)
    assert reader.watermark() == MAX_TIME


@given(files_of_times, st.integers(1, 4), st.integers(0, 30))
def test_seeking_to_a_position_goes_on_without_loss_or_repeat(files: Files, max_rows: int, polls: int):
    first, before = reader_of(files), []
    for _ in range(polls):
        if (batch := first.poll(max_rows)) is not None:
            before += batch.times.tolist()
    watermark = first.watermark()
    position = msgpack.unpackb(msgpack.packb(first.position()))
    first.close()
    second = reader_of(files)
    second.seek(position)
    assert second.position() == position
    assert second.watermark() >= watermark
    assert before + drained(second) == [time for times in files for time in times]


def test_statistics_of_unread_splits_hold_the_watermark_back():
    reader = reader_of([[50, 60], [10]])
    reader.poll(1)
    assert reader.watermark() == 10


def test_a_split_without_statistics_holds_the_watermark_back_until_it_is_read():
    reader = reader_of([[50, 60], [70]], known=False)
    reader.poll(1)
    assert reader.watermark() == MIN_TIME
    reader.poll(2)
    reader.poll(2)
    assert reader.watermark() == 70 - MAX_DELAY


def test_nothing_is_claimed_for_splits_that_are_not_listed_yet():
    reader = SplitReader("read", [], lambda split, rows: iter(()), index=0, parallelism=2, event_time=BY_TIME, complete=False)
    assert (reader.poll(1), reader.finished, reader.watermark()) == (None, False, MIN_TIME)
    reader.extend([Split("other's", 1, min_time=70, max_time=90)])
    assert (reader.poll(1), reader.finished, reader.watermark()) == (None, False, 90 - MAX_DELAY)
    reader.complete()
    assert (reader.finished, reader.watermark()) == (True, MAX_TIME)


def test_without_event_time_there_is_no_claim():
    reader = SplitReader("read", [Split("a", 0)], lambda split, rows: iter(()), index=0, parallelism=1)
    assert reader.watermark() == MAX_TIME


def test_a_changed_list_of_files_is_noticed_when_it_matters():
    reader = reader_of([[1, 2]])
    reader.poll(1)
    other = reader_of([[1, 2], [3]], splits=[Split("1", 0), Split("0", 1)])
    other.seek(reader.position())
    with pytest.raises(ConnectorError, match="stopped after 1 rows of split 0, 0, but this is now 1"):
        other.poll(1)


def test_a_file_that_has_shrunk_is_noticed():
    reader = reader_of([[1, 2, 3]])
    reader.poll(3)
    other = reader_of([[1]])
    other.seek(reader.position())
    with pytest.raises(ConnectorError, match="0 has 2 rows fewer than when the checkpoint was taken"):
        other.poll(1)


def test_closing_a_reader_closes_the_open_split():
    closed: list[str] = []

    def open_split(split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        try:
            yield pa.record_batch({"n": [1, 2]})
        finally:
            closed.append(split.path)

    reader = SplitReader("read", [Split("a", 0)], open_split, index=0, parallelism=1)
    reader.poll(1)
    reader.close()
    assert closed == ["a"]
