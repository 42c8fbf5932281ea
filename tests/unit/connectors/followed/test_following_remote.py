"""Files that appear in remote folders: in memory, and on an FTP server that every process can access."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from followed_folder import KINDS, Folder, run
from ftp_server import ftp_server
from readers_at_random import Readers

import evenflow as ef
from evenflow.connectors.files.remote import listed
from evenflow.connectors.followed import follow
from evenflow.testing import check_source

every_kind = pytest.mark.parametrize("kind", [*KINDS])


@pytest.fixture(autouse=True)
def looks_whenever_polled(monkeypatch):
    """Remove the pause after a look that took long."""
    monkeypatch.setattr(follow, "LOOKING", 1.0)


@pytest.fixture
def memory():
    """Provide a folder in memory."""
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


def polled(reader: Any, max_rows: int) -> Iterator[Any]:
    """Yield all batches of a finite reader."""
    while not reader.finished:
        batch = reader.poll(max_rows)
        if batch is not None:
            yield batch


class InMemory(Folder):
    """A folder in memory, where files appear whole."""

    def arrive(self, rows: Any, name: str | None = None, changed: int | None = None) -> Path:
        path = super().arrive(rows, name, changed)
        fsspec.filesystem("memory").pipe_file(f"{self.url}/{path.name}", path.read_bytes())
        return path


@pytest.mark.slow
@every_kind
def test_every_row_comes_once_from_memory_whatever_appears_and_is_lost_when(kind, memory, tmp_path_factory):
    for seed in range(20):
        folder = InMemory(tmp_path_factory.mktemp("in"), kind, f"memory://in/{kind}/{seed}")
        files, came = run(folder, random.Random(seed), 40)
        assert sorted(came) == [n for file in files for n in file], f"seed {seed}"
        for number, rows in enumerate(files):
            assert [n for n in came if n // 100 == number] == rows, f"seed {seed}"


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["parquet", "csv.gz", "txt"])
def test_every_row_comes_once_over_ftp_whatever_appears_and_is_lost_when(kind, tmp_path_factory):
    for seed in range(2):
        path = tmp_path_factory.mktemp("in")
        with ftp_server(path) as url:
            files, came = run(Folder(path, kind, url), random.Random(seed), 30)
        assert sorted(came) == [n for file in files for n in file], f"seed {seed}"
        for number, rows in enumerate(files):
            assert [n for n in came if n // 100 == number] == rows, f"seed {seed}"


@every_kind
def test_files_that_are_there_are_read_to_their_end(kind, memory, tmp_path):
    folder = InMemory(tmp_path, kind, "memory://in")
    for number in range(3):
        folder.arrive([(1_000 + place, 10 * number + place) for place in range(5)])
    options = {name: value for name, value in folder.options.items() if name not in ("follow", "poll_every")}
    for path in ("memory://in", "memory://in/", f"memory://in/*.{kind}", "memory://i*", [f"memory://in/{n}.{kind}" for n in range(3)]):
        source = folder.read(path, **options)
        check_source(source, seeds=range(2))
        reader = source.reader(0, 1)
        assert sum(batch.num_rows for batch in polled(reader, 100)) == 15


def test_a_large_file_is_read_in_pieces(tmp_path):
    lines = [f"line {n}" for n in range(50_000)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    with ftp_server(tmp_path) as url:
        source = ef.read_text(url)
        source.start()
        reader = source.reader(0, 1)
        rows = [row for batch in polled(reader, 10_000) for row in batch.rows.column("item").to_pylist()]
    assert rows == lines


READING = """
import sys
import evenflow as ef

source = ef.read_text(sys.argv[1], follow=True, poll_every="1ms")
source.start()
reader, rows = source.reader(0, 1), 0
print("started", flush=True)
while rows < 3:
    batch = reader.poll(10)
    rows += 0 if batch is None else batch.num_rows
print(rows, flush=True)
"""


def test_another_process_reads_what_appears(tmp_path):
    folder = Folder(tmp_path, "txt")
    folder.arrive([(0, 1)])
    with ftp_server(tmp_path) as url, subprocess.Popen([sys.executable, "-c", READING, url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        folder.arrive([(0, 2), (0, 3)])
        assert process.stdout.read() == "3\n"
    assert process.returncode == 0


def test_hidden_files_and_folders_and_other_kinds_are_not_read(memory):
    for name in ("a.csv", "_b.csv", ".c.csv", "d.txt", "_e/f.csv", "g/h.csv"):
        memory.pipe_file(f"/in/{name}", b"n\n1\n")
    source = ef.read_csv("memory://in")
    assert [path for path, _ in source.arrivals()] == ["memory://in/a.csv", "memory://in/g/h.csv"]


def test_columns_of_folders_come_from_memory_and_text_in_such_a_folder_is_refused(memory):
    memory.pipe_file("/in/day=1/a%2Fb=c/a.csv", b"n\n1\n")
    memory.pipe_file("/in/day=1/a.txt", b"n\n")
    for path in ("memory://in", "memory://in/*/*", "memory://in/"):
        source = ef.read_csv(path)
        source.start()
        assert [row for batch in polled(source.reader(0, 1), 5) for row in batch.to_rows()] == [{"n": 1, "day": "1", "a/b": "c"}]
    with pytest.raises(ef.ConnectorError, match=r"memory://in/day=1/a\.txt is in a partition folder"):
        ef.read_text("memory://in").start()


def test_a_file_that_changes_after_it_was_read_is_named(memory, tmp_path):
    folder = InMemory(tmp_path, "txt", "memory://in")
    folder.arrive([(0, 1)], "a.txt")
    readers = Readers(folder.source(), 1)
    assert readers.drain() == [1]
    folder.arrive([(0, 1), (0, 2)], "a.txt")
    with pytest.raises(ef.ConnectorError, match=r"memory://in/a\.txt has changed after it was read"):
        readers.drain()


def test_a_server_that_is_gone_is_named(tmp_path):
    folder = Folder(tmp_path, "txt")
    folder.arrive([(0, 1)])
    with ftp_server(tmp_path) as url:
        folder.url = url
        readers = Readers(folder.source(), 1)
        assert readers.drain() == [1]
    with pytest.raises(ef.ConnectorError, match=rf"{url} can't be listed: .*; check the address"):
        readers.drain()


@pytest.mark.parametrize("url", ["nonsense://in", "memory-x://in"])
def test_unknown_protocols_are_refused(url):
    with pytest.raises(ef.FlowError, match=r"operator `read_text`: .*:// can't be used: Protocol not known"):
        ef.read_text(url)


def test_urls_of_local_files_are_paths(tmp_path):
    (tmp_path / "a.txt").write_text("x\n")
    source = ef.read_text(f"file://{tmp_path}")
    assert [path for path, _ in source.arrivals()] == [str(tmp_path / "a.txt")]


def test_url_without_files_is_refused(memory):
    with pytest.raises(ef.ConnectorError, match=r"memory://nowhere has no files that end with \.csv"):
        ef.read_csv("memory://nowhere").start()
    assert listed("memory://nowhere") == []


@pytest.mark.parametrize("read", [ef.read_text, ef.read_csv, ef.read_json])
def test_lines_that_are_appended_elsewhere_are_refused(read):
    with pytest.raises(ef.FlowError, match=r'follow="lines" is for files of a local or mounted file system'):
        read("memory://in", follow="lines")
