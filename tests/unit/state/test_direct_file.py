"""Files are on the disk byte for byte, for any sequence of writes and any abilities of the file system."""

from __future__ import annotations

import errno
import fcntl
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.state import direct_file
from evenflow.state.direct_file import DirectFile

PIECES = st.lists(st.one_of(st.binary(max_size=50), st.integers(0, 40_000).map(os.urandom)), max_size=8)


@given(pieces=PIECES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_pieces_are_there_in_order(pieces, tmp_path, monkeypatch):
    monkeypatch.setattr(direct_file, "_AT_ONCE", 8_192)
    monkeypatch.setattr(direct_file, "_CACHED", 16_384)
    path = tmp_path / "state"
    path.unlink(missing_ok=True)
    with DirectFile(path) as file:
        for piece in pieces:
            file.write(piece)
    assert path.read_bytes() == b"".join(pieces)


def test_file_that_is_there_is_not_touched(tmp_path):
    path = tmp_path / "state"
    path.write_bytes(b"older")
    with pytest.raises(FileExistsError):
        DirectFile(path)
    assert path.read_bytes() == b"older"


def test_file_system_that_can_not_pass_the_page_cache_is_written_as_any(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(direct_file, "_CACHED", direct_file._AT_ONCE)
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with DirectFile(tmp_path / "state") as file:
        file.write(b"all of it" * 200_000)
    assert (tmp_path / "state").read_bytes() == b"all of it" * 200_000


def test_disk_that_takes_a_part_only_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", lambda file, data: len(data) - 1)
    with pytest.raises(OSError, match="No space left on device"), DirectFile(tmp_path / "state") as file:
        file.write(b"all of it")
