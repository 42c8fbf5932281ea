"""The contract of every bounded source: each row once, seeking without loss, a true watermark."""

from __future__ import annotations

import pytest
from bounded_sources import MAX_DELAY, bids, csv, expected, generated, items, ndjson, number, parquet, started, streams, text
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.formats import file_source
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME
from evenflow.engine.source import SourceReader
from evenflow.testing import check_source

every_source = pytest.mark.parametrize("build", [items, parquet, csv, ndjson, text, generated, bids])


def drained(reader: SourceReader, max_rows: int = 3) -> list[int]:
    rows: list[int] = []
    while not reader.finished:
        batch = reader.poll(max_rows)
        rows += [] if batch is None else [number(row) for row in batch.to_rows()]
    assert reader.poll(max_rows) is None
    assert reader.watermark() == MAX_TIME
    reader.close()
    return rows


@pytest.mark.few(7)
@every_source
@pytest.mark.parametrize("parallelism", [1, 2, 3])
@given(files=streams)
def test_workers_together_give_every_row_exactly_once(build, parallelism, tmp_path_factory, files):
    source = started(build, files, tmp_path_factory)
    shares = [drained(source.reader(index, parallelism)) for index in range(parallelism)]
    assert sorted(row for share in shares for row in share) == expected(build, files)


@pytest.mark.few(3)
@every_source
@given(files=streams, seed=st.integers(0, 1_000))
def test_a_source_conforms_whatever_is_in_its_files(build, tmp_path_factory, files, seed):
    check_source(build(tmp_path_factory.mktemp("input"), files), seeds=[seed])


@pytest.mark.parametrize("build", [items, parquet, csv, ndjson, generated, bids])
def test_the_watermark_follows_the_rows(build, tmp_path_factory):
    files = [[{"ts": 1_000 + n, "n": n} for n in range(50)]]
    reader = started(build, files, tmp_path_factory).reader(0, 1)
    newest = 0
    for _ in range(3):
        batch = reader.poll(2)
        assert batch is not None
        assert batch.times is not None
        newest = max(newest, int(batch.times.max()))
        assert newest - 2 * MAX_DELAY * 1000 <= reader.watermark() <= newest + 1000
    reader.close()


@every_source
def test_a_source_without_rows_ends_at_once(build, tmp_path_factory):
    source = started(build, [[], []], tmp_path_factory)
    for index in range(2):
        assert drained(source.reader(index, 2)) == []


@every_source
def test_a_source_says_what_it_promises_at_a_recovery(build, tmp_path_factory):
    assert "exactly once" in started(build, [[]], tmp_path_factory).guarantee


@pytest.mark.parametrize("build", [parquet, csv, ndjson])
def test_files_not_yet_read_hold_the_watermark_back_no_further_than_their_first_rows(build, tmp_path_factory):
    files = [[{"ts": 1_000 + 100 * number + place, "n": 100 * number + place} for place in range(4)] for number in range(5)]
    reader = started(build, files, tmp_path_factory).reader(0, 2)
    assert reader.watermark() >= (1_000 - MAX_DELAY) * 1000
    batch = reader.poll(4)
    assert batch is not None
    assert reader.watermark() >= (1_003 - MAX_DELAY) * 1000
    reader.close()


@pytest.mark.parametrize("build", [csv, ndjson])
def test_a_file_whose_first_row_is_long_is_read_all_the_same(build, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(f"evenflow.connectors.formats.{'csv' if build is csv else 'json'}.FIRST_BYTES", 4)
    reader = started(build, [[{"ts": 1_000, "n": 1}]], tmp_path_factory).reader(0, 1)
    assert reader.watermark() == MIN_TIME
    assert drained(reader) == [1]


@pytest.mark.parametrize("build", [csv, ndjson])
def test_many_files_are_not_looked_into_before_they_are_read(build, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(file_source, "MOST_LOOKED_AT", 2)
    reader = started(build, [[{"ts": 1_000, "n": n}] for n in range(3)], tmp_path_factory).reader(0, 1)
    assert reader.watermark() == MIN_TIME
    assert drained(reader) == [0, 1, 2]
