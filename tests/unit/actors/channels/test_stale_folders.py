from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from evenflow.actors.channels.stale_folders import sweep_stale_folders


@pytest.fixture
def temporary():
    with tempfile.TemporaryDirectory(prefix="ef-", dir="/tmp") as path:
        yield Path(path)


@pytest.fixture
def make(temporary):
    """Create a socket folder with a socket, on which a process listens or no longer listens."""
    listening = []

    def make_folder(job, *, alive, age):
        folder = temporary / f"evenflow-{os.getuid()}-{job}"
        folder.mkdir(0o700)
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(folder / "a.sock"))
        server.listen()
        listening.append(server)
        if not alive:
            server.close()
        for path in (folder / "a.sock", folder):
            os.utime(path, (path.stat().st_mtime - age,) * 2)
        return folder

    yield make_folder
    for server in listening:
        server.close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("alive", "age", "stays"),
    [
        pytest.param(False, 3600, False, id="a dead one goes"),
        pytest.param(True, 3600, True, id="one that is listened on stays"),
        pytest.param(False, 1, True, id="one that is just being made stays"),
    ],
)
def test_only_folders_that_are_provably_dead_go(make, temporary, alive, age, stays):
    folder = make("job", alive=alive, age=age)
    sweep_stale_folders(temporary)
    assert folder.exists() == stays


def test_a_folder_with_a_foreign_file_stays_whole(make, temporary):
    folder = make("job", alive=False, age=3600)
    (folder / "notes.txt").touch()
    os.utime(folder, (0, 0))
    sweep_stale_folders(temporary)
    assert names(folder) == ["a.sock", "notes.txt"]


def test_folders_of_others_are_left_alone(make, temporary):
    (temporary / f"evenflow-{os.getuid()}-link").symlink_to(make("job", alive=True, age=3600))
    (temporary / f"evenflow-{os.getuid() + 1}-job").mkdir()
    before = names(temporary)
    sweep_stale_folders(temporary)
    assert names(temporary) == before
