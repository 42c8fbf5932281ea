"""A mapped file is read as any other, and an error of the disk is raised where it is read."""

from __future__ import annotations

import errno
import io
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.state import mapped_file
from evenflow.state.mapped_file import MappedReader


@given(content=st.integers(0, 100_000).map(os.urandom), sizes=st.lists(st.integers(0, 40_000), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_file_is_read_as_it_is_in_pieces_of_any_size(content, sizes, tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_file, "_PIECE", 4_000)
    path = tmp_path / "state"
    path.write_bytes(content)
    with MappedReader(path) as file, path.open("rb") as plain:
        assert file.seek(0, os.SEEK_END) == len(content)
        file.seek(0, os.SEEK_SET)
        for size in [*sizes, len(content), 1]:
            assert bytes(file.read(size)) == plain.read(size)


def test_content_stays_when_the_file_is_closed_and_removed(tmp_path):
    path = tmp_path / "state"
    path.write_bytes(content := os.urandom(100_000))
    with MappedReader(path) as file:
        read = file.read(100_000)
    path.unlink()
    assert bytes(read) == content


def test_file_that_became_shorter_ends_there(tmp_path):
    path = tmp_path / "state"
    path.write_bytes(os.urandom(100_000))
    with MappedReader(path) as file:
        os.truncate(path, 30_000)
        assert len(file.read(50_000)) == 30_000
        assert len(file.read(50_000)) == 0


def test_error_of_the_disk_is_raised(tmp_path):
    class Broken(io.FileIO):
        def readinto(self, memory):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = tmp_path / "state"
    path.write_bytes(b"all of it")
    with MappedReader(path) as file:
        file._file.close()
        file._file = Broken(path)
        with pytest.raises(OSError, match="Input/output error"):
            file.read(5)


def test_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        MappedReader(tmp_path / "state")
