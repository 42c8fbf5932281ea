"""Files that appear in a folder: each row once, in order within a file, with true watermarks, despite losses and reassignments."""

from __future__ import annotations

import random
from typing import Any

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from followed_folder import FOLLOWED, KINDS, MAX_DELAY, Folder, run
from readers_at_random import Readers, numbers, through_a_checkpoint

from evenflow.connectors.followed import follow
from evenflow.connectors.followed.arrived import BUCKETS, ArrivedFile
from evenflow.connectors.followed.read_files import ReadFiles
from evenflow.connectors.followed.reader import FollowReader
from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.json import read_json
from evenflow.connectors.formats.parquet import read_parquet
from evenflow.connectors.formats.text import read_text
from evenflow.connectors.quiet import Clocks
from evenflow.engine.errors import ConnectorError, FlowError
from evenflow.engine.protocol.elements import MIN_TIME

every_kind = pytest.mark.parametrize("kind", [*KINDS])


@pytest.fixture(autouse=True)
def looks_whenever_polled(monkeypatch):
    """Remove the pause after a look that took long."""
    monkeypatch.setattr(follow, "LOOKING", 1.0)


@pytest.mark.slow
@every_kind
def test_every_row_comes_once_and_in_order_whatever_appears_and_is_lost_when(kind, tmp_path_factory):
    for seed in range(200 if kind == "txt" else 60):
        folder = Folder(tmp_path_factory.mktemp("in"), kind)
        files, came = run(folder, random.Random(seed), 40)
        assert sorted(came) == [n for file in files for n in file], f"seed {seed}"
        for number, rows in enumerate(files):
            assert [n for n in came if n // 100 == number] == rows, f"seed {seed}"


@every_kind
def test_files_are_read_in_the_order_of_their_last_changes(kind, tmp_path):
    folder = Folder(tmp_path, kind)
    for number, changed in enumerate([30, 10, 20]):
        folder.arrive([(1_000, number)], changed=10**18 + changed)
    readers = Readers(folder.source(), 1)
    assert readers.drain() == [1, 2, 0]
    folder.arrive([(1_000, 3)], changed=10**18)
    assert readers.drain() == [1, 2, 0, 3]


@every_kind
def test_hidden_files_and_files_of_other_kinds_are_not_read_until_they_are_renamed(kind, tmp_path):
    folder = Folder(tmp_path, kind)
    for name in (f"_a.{kind}", f".a.{kind}", "a.other"):
        folder.arrive([(1_000, 1)], name)
    readers = Readers(folder.source(), 2)
    assert readers.drain() == []
    (tmp_path / f"_a.{kind}").rename(tmp_path / f"a.{kind}")
    assert readers.drain() == [1]


@every_kind
def test_a_glob_that_matches_nothing_yet_is_followed_into_new_folders(kind, tmp_path):
    source = KINDS[kind][0](tmp_path / "*" / "x*", **KINDS[kind][2])
    source.start()
    readers = Readers(source, 2)
    assert readers.drain() == []
    (tmp_path / "new").mkdir()
    Folder(tmp_path, kind).arrive([(1_000, 1)], f"new/x.{kind}")
    assert readers.drain() == [1]


@every_kind
def test_a_file_that_changes_after_it_was_read_is_named(kind, tmp_path):
    folder = Folder(tmp_path, kind)
    path = folder.arrive([(1_000, 1)])
    readers = Readers(folder.source(), 1)
    readers.drain()
    readers.share_out(2)
    folder.arrive([(1_000, 1), (1_000, 2)], path.name)
    with pytest.raises(ConnectorError, match=f"{path} has changed after it was read; a file of a followed folder must be complete"):
        readers.drain()


@every_kind
@pytest.mark.parametrize("happens", ["changes", "vanishes"])
def test_a_file_that_changes_or_vanishes_after_it_was_read_partly_is_named(kind, happens, tmp_path):
    folder = Folder(tmp_path, kind)
    path = folder.arrive([(1_000, n) for n in range(9)])
    readers = Readers(folder.source(), 1)
    readers.poll(0, 4)
    readers.share_out(1)
    if happens == "changes":
        folder.arrive([(1_000, n) for n in range(10)], path.name)
        problem = f"{path} has changed after 4 of its rows were read"
    else:
        path.unlink()
        problem = f"{path} was removed before it was read to its end, after 4 rows"
    with pytest.raises(ConnectorError, match=problem):
        readers.drain()


def test_a_file_that_grows_while_it_is_read_is_named(tmp_path):
    folder = Folder(tmp_path, "txt")
    path = folder.arrive([(0, n) for n in range(9)])
    readers = Readers(folder.source(), 1)
    readers.poll(0, 4)
    with path.open("a") as file:
        file.write("9\n")
    with pytest.raises(ConnectorError, match="has changed while it was read"):
        readers.drain()


def test_a_file_that_vanishes_before_it_was_read_is_named(tmp_path):
    folder = Folder(tmp_path, "txt")
    folder.arrive([(0, 1), (0, 2)], changed=1)
    path = folder.arrive([(0, 3)], changed=2)
    readers = Readers(folder.source(), 1)
    readers.poll(0, 1)
    path.unlink()
    with pytest.raises(ConnectorError, match=f"{path} was removed before it was read"):
        readers.drain()


@pytest.mark.slow
def test_files_as_old_as_max_age_are_forgotten_and_not_read(tmp_path):
    folder, second = Folder(tmp_path, "txt"), 10**9
    source = folder.source(max_age="10s")
    readers = Readers(source, 1)
    for number in range(3_000):
        folder.arrive([(0, number)], changed=10**18 + number * second)
    assert readers.drain() == list(range(3_000))
    readers.save()
    [position] = readers.saved[0]
    assert sum(len(files) for _, _, files in position["read"]) <= 32 * BUCKETS * 10
    assert len(msgpack.packb(position)) < 20 * BUCKETS + 32 * BUCKETS * 10
    readers.share_out(3)
    folder.arrive([(0, -1)], changed=10**18)
    assert readers.drain() == list(range(3_000))


def test_a_folder_that_was_full_at_the_start_is_read_whole_however_old_its_files_are(tmp_path):
    folder = Folder(tmp_path, "txt")
    for number in range(500):
        folder.arrive([(0, number)], changed=number * 86_400 * 10**9)
    readers = Readers(folder.source(max_age="1d"), 3)
    for index in range(3):
        readers.poll(index, 1)
    readers.share_out(2)
    assert sorted(readers.drain()) == list(range(500))


def test_a_bucket_forgets_files_by_the_age_of_its_own_newest_file():
    read = ReadFiles(10)
    files = [ArrivedFile(changed, f"/in/{changed}", 1) for changed in range(100)]
    for file in files:
        assert read.is_new(file)
        read.add(file)
    assert not any(read.is_new(file) for file in files)
    again = ReadFiles(10, through_a_checkpoint(read.encode(range(BUCKETS))))
    assert not any(again.is_new(file) for file in files)
    assert len(again) <= len(read)
    with pytest.raises(ValueError, match="/in/99"):
        again.is_new(ArrivedFile(100, "/in/99", 1))


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_reader_without_files_does_not_hold_event_time_back(kind, tmp_path):
    folder = Folder(tmp_path, kind)
    readers = Readers(folder.source(), 2)
    folder.arrive([(1_000, 1), (2_000, 2)])
    readers.drain()
    readers.drain()
    assert min(reader.watermark() for reader in readers.readers) >= (1_000 - MAX_DELAY) * 1_000
    folder.arrive([(3_000, 3)])
    readers.drain()
    readers.drain()
    assert min(reader.watermark() for reader in readers.readers) == (3_000 - MAX_DELAY) * 1_000


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_event_time_waits_for_a_look_that_began_after_the_newest_row_was_known(kind, tmp_path):
    folder = Folder(tmp_path, kind)
    folder.arrive([(1_000, 1)])
    reader = folder.source().reader(0, 1)
    assert reader.poll(10).num_rows == 1
    assert reader.watermark() == MIN_TIME
    assert reader.poll(10) is None
    assert reader.watermark() == (1_000 - MAX_DELAY) * 1_000


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_file_that_does_not_fit_those_of_the_start_is_named(kind, tmp_path):
    folder = Folder(tmp_path, kind)
    folder.arrive([(1_000, 1)])
    readers = Readers(folder.source(schema=None), 1)
    assert readers.drain() == [1]
    wrong = tmp_path / f"wrong.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"ts": [1], "n": [1], "more": [1]}), wrong)
    else:
        wrong.write_text("ts,n,more\n1,1,1\n" if kind == "csv" else '{"ts": 1, "n": 1, "more": 1}\n')
    with pytest.raises(ConnectorError, match=rf"operator `read_{kind}`: .*wrong\.{kind}"):
        readers.drain()


def test_a_column_that_was_all_null_in_the_files_of_the_start_needs_a_type(tmp_path):
    pq.write_table(pa.table({"n": pa.nulls(1)}), tmp_path / "a.parquet")
    source = read_parquet(tmp_path, **FOLLOWED)
    source.start()
    reader = source.reader(0, 1)
    assert reader.poll(9).num_rows == 1
    pq.write_table(pa.table({"n": [1]}), tmp_path / "b.parquet")
    with pytest.raises(ConnectorError, match=r"column `n` is int64 in .*b\.parquet, and was all null in the files of the start"):
        reader.poll(9)


@pytest.mark.parametrize("read", [read_parquet, read_csv, read_json])
def test_a_folder_without_files_needs_a_schema(read, tmp_path):
    with pytest.raises(ConnectorError, match="from which to infer the columns; give them in `schema`"):
        read(tmp_path, follow=True).start()


@every_kind
def test_a_path_that_is_not_there_is_refused_at_the_start(kind, tmp_path):
    with pytest.raises(ConnectorError, match="gone does not exist"):
        KINDS[kind][0](tmp_path / "gone", **KINDS[kind][2]).start()


def test_parquet_files_can_not_be_read_as_they_grow():
    with pytest.raises(FlowError, match="operator `read_parquet`: follow is 'lines'; it must be True or False"):
        read_parquet("in/", follow="lines")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"follow": "yes"}, "follow is 'yes'; it must be True"),
        ({"poll_every": 0}, "poll_every is 0"),
        ({"max_age": 0}, "max_age 0; both must be above 0"),
    ],
)
def test_wrong_settings_are_refused(options, problem):
    with pytest.raises(FlowError, match=problem):
        read_text("in/", **{"follow": True, **options})


def test_positions_of_some_readers_are_refused(tmp_path):
    source = Folder(tmp_path, "txt").source()
    with pytest.raises(FlowError, match="operator `read_text`: these 1 positions are not those of all its readers"):
        source.share_out([source.reader(0, 2).position()], 3)


def test_a_look_is_not_repeated_before_its_time(tmp_path):
    folder = Folder(tmp_path, "txt")
    now = [100.0]
    source = folder.source(poll_every="2s")
    clock: dict[str, Any] = {"clocks": Clocks(now=lambda: now[0])}
    reader = FollowReader(source, source._open, source.follow, index=0, parallelism=1, event_time=None, **clock)
    assert reader.poll(9) is None
    folder.arrive([(0, 1)])
    assert (reader.poll(9), reader.ready_in()) == (None, 2.0)
    now[0] = 102.0
    assert reader.ready_in() == 0.0
    assert numbers(reader.poll(9)) == [1]
