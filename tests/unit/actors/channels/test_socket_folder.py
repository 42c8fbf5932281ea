from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from evenflow.actors.channels import socket_folder
from evenflow.actors.channels.socket_folder import SocketFolder
from evenflow.engine.errors import ClusterError


@pytest.fixture
def folder(tmp_path):
    return SocketFolder("job", tmp_path)


def test_only_its_user_may_enter_it(folder):
    folder.open()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    folder.open()


def test_a_link_in_its_place_is_refused(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ClusterError, match="is a link or a file"):
        folder.open()


def test_a_file_in_its_place_is_refused(folder):
    folder.path.touch()
    with pytest.raises(ClusterError, match="is a link or a file"):
        folder.open()


def test_one_that_others_may_enter_is_refused(folder):
    folder.path.mkdir()
    folder.path.chmod(0o750)
    with pytest.raises(ClusterError, match=r"open to others \(mode 0750\)"):
        folder.open()


def test_one_of_another_user_is_refused(folder, monkeypatch):
    folder.path.mkdir(mode=0o700)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(ClusterError, match=f"belongs to user {owner}"):
        folder.open()


def test_a_temporary_folder_that_is_not_there_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(ClusterError, match="set TMPDIR"):
        SocketFolder("job", tmp_path / "missing").open()


def test_a_path_too_long_for_a_socket_is_refused():
    with pytest.raises(ClusterError, match="longer than 107 bytes; set TMPDIR"):
        SocketFolder("job", Path("/tmp", "x" * 80)).new_socket()


def test_the_folder_is_removed_with_its_last_socket(folder):
    folder.open()
    socket = folder.new_socket()
    socket.touch()
    folder.close()
    assert folder.path.exists()
    socket.unlink()
    folder.close()
    folder.close()
    assert not folder.path.exists()


def test_removing_it_removes_what_killed_workers_left(folder):
    folder.open()
    folder.new_socket().touch()
    folder.remove()
    assert not folder.path.exists()
    folder.remove()


def test_two_folders_are_two_nodes(folder, tmp_path):
    folder.open()
    (tmp_path / "container").mkdir()
    other = SocketFolder("job", tmp_path / "container")
    other.open()
    assert folder.node() != other.node()
    assert folder.node() == folder.node()


def test_two_hosts_of_one_name_with_folders_numbered_alike_are_two_nodes(folder, tmp_path, monkeypatch):
    folder.open()
    here = folder.node()
    (tmp_path / "boot_id").write_text("another kernel\n")
    monkeypatch.setattr(socket_folder, "BOOT_ID", tmp_path / "boot_id")
    assert folder.node() != here
