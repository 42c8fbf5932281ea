"""`evenflow doctor` judges each fact about a machine, and says what to do."""

from __future__ import annotations

import os
import socket

import pytest

from evenflow.cli.command_line import main
from evenflow.doctor import checks, probes
from evenflow.doctor.checks import advice, missing, ok

GIB = 1 << 30
OPENJDK = 'openjdk version "17.0.12" 2024-07-16\nOpenJDK Runtime Environment'


@pytest.mark.parametrize(
    ("finding", "state", "said"),
    [
        pytest.param(checks.python((3, 12, 1), "Linux"), "ok", "3.12.1 on Linux", id="a new Python"),
        pytest.param(checks.python((3, 10, 9), "Linux"), "missing", "install Python 3.11", id="an old Python"),
        pytest.param(checks.python((3, 12, 1), "Darwin"), "advice", "tested on Linux only", id="another system"),
        pytest.param(checks.java(OPENJDK, "/opt/java"), "ok", "17 (JAVA_HOME=/opt/java)", id="Java 17"),
        pytest.param(checks.java('java version "1.8.0_402"', None), "advice", "install Java 17", id="Java 8 counts as 8"),
        pytest.param(checks.java(None, None), "advice", "none on the PATH", id="no Java"),
        pytest.param(checks.java("", None), "advice", "no answer", id="a Java that says nothing"),
        pytest.param(checks.java("Killed", "/opt/java"), "advice", "Killed", id="a Java that doesn't run"),
        pytest.param(checks.loopback(None), "ok", "127.0.0.1 answers", id="loopback"),
        pytest.param(checks.loopback("[Errno 1] not permitted"), "missing", "allow TCP on 127.0.0.1", id="no loopback"),
        pytest.param(checks.temporary_folder("/tmp", 9 * GIB, None), "ok", "9.0 GiB left", id="a temporary folder"),
        pytest.param(checks.temporary_folder("/tmp", GIB // 2, None), "advice", "free some space", id="a full disk"),
        pytest.param(checks.temporary_folder("/tmp", 9 * GIB, "Read-only"), "missing", "set TMPDIR", id="a folder without sockets"),
        pytest.param(checks.temporary_folder("/a" * 40, 9 * GIB, None), "missing", "at most", id="a long path"),
        pytest.param(checks.open_files(65_536, 65_536), "ok", "65536", id="many files"),
        pytest.param(checks.open_files(-1, -1), "ok", "any number", id="any number of files"),
        pytest.param(checks.open_files(1024, 65_536), "advice", "ulimit -n 8192", id="few files, and more allowed"),
        pytest.param(checks.open_files(1024, 4096), "advice", "LimitNOFILE", id="few files, and no more allowed"),
        pytest.param(checks.open_files(64, 65_536), "missing", "ulimit -n 8192", id="too few files"),
        pytest.param(checks.shared_memory(8 * GIB, 7 * GIB), "ok", "7.0 GiB free", id="shared memory"),
        pytest.param(checks.shared_memory(64 << 20, 64 << 20), "advice", "--shm-size", id="Docker's shared memory"),
        pytest.param(checks.shared_memory(8 * GIB, 0), "advice", "--shm-size", id="full shared memory"),
        pytest.param(checks.shared_memory(None, 0), "advice", "missing", id="no shared memory"),
        pytest.param(checks.ray_cluster(None, (), None, token=False), "ok", "starts one on this machine", id="no cluster"),
        pytest.param(checks.ray_cluster("h:6379", (), None, token=True), "ok", "h:6379 answers", id="a cluster with a token"),
        pytest.param(checks.ray_cluster("h:6379", (), None, token=False), "advice", "RAY_AUTH_MODE=token", id="a cluster without one"),
        pytest.param(checks.ray_cluster(None, ("a:1", "b:2"), None, token=True), "advice", "RAY_ADDRESS=a:1", id="two clusters"),
        pytest.param(checks.ray_cluster("h:1", (), "nobody answers", token=True), "missing", "unset RAY_ADDRESS", id="a lost cluster"),
        pytest.param(checks.ray_starts(3.21, None), "ok", "in 3.2 s", id="Ray starts"),
        pytest.param(checks.ray_starts(None, "no shared memory"), "missing", "session_latest", id="Ray doesn't start"),
        pytest.param(checks.shared_folder("/mnt", None), "ok", "on every node", id="a shared folder"),
        pytest.param(checks.shared_folder("/mnt", "Permission denied"), "missing", "Permission denied", id="a folder of others"),
    ],
)  # fmt: skip
def test_a_fact_is_judged_and_said_what_to_do(finding, state, said):
    assert finding.state == state
    assert said in f"{finding.found} {finding.todo}"
    assert (finding.todo == "") == (state == "ok")


NEEDED = ("ray[default]>=2.50", "numpy>=2.0", "pytest>=9; extra == 'dev'", "colorama>=1; sys_platform == 'win32'")


@pytest.mark.parametrize(
    ("installed", "wrong"),
    [
        ({"ray": "2.56.0", "numpy": "2.4.6"}, ()),
        ({"ray": "2.49.1", "numpy": "2.4.6"}, ("ray 2.49.1 is not >=2.50",)),
        ({"ray": None, "numpy": "1.26"}, ("no ray", "numpy 1.26 is not >=2.0")),
    ],
)
def test_dependencies_are_compared_with_what_is_required(installed, wrong):
    finding = checks.dependencies(NEEDED, installed)
    assert finding.state == ("missing" if wrong else "ok")
    assert finding.found == ("; ".join(wrong) or "2 packages")


def test_versions_other_than_the_tested_ones_are_named():
    constraints = "# what the tests ran with\nray==2.56.0\nnumpy==2.4.6\n"
    assert checks.tested_versions(constraints, {"ray": "2.56.0", "numpy": "2.4.6", "own": "1"}).state == "ok"
    assert checks.tested_versions(constraints, {"ray": "2.56.0", "numpy": "2.5.0"}).found == "numpy 2.5.0 (tested: 2.4.6)"


def test_a_folder_is_tried_with_files_and_sockets_and_left_empty(tmp_path):
    assert probes.folder_problem(tmp_path) is None
    assert "No such file" in str(probes.folder_problem(tmp_path / "nowhere"))
    assert "No such file" in str(probes.socket_problem(tmp_path / "nowhere"))
    assert list(tmp_path.iterdir()) == []


def test_a_loopback_that_is_forbidden_is_missing(monkeypatch):
    def forbid(*_: object) -> socket.socket:
        raise PermissionError(1, os.strerror(1))

    assert probes._loopback().state == "ok"
    monkeypatch.setattr(socket, "create_server", forbid)
    assert probes._loopback().state == "missing"


@pytest.mark.parametrize(("last", "code"), [(advice("Java", "none", "install it"), 0), (missing("Python", "3.9", "install 3.11"), 1)])
def test_the_command_prints_what_to_do_and_fails_if_something_is_missing(last, code, monkeypatch, capsys):
    monkeypatch.setattr(probes, "findings", lambda folders, start_ray: iter([ok("loopback sockets", "127.0.0.1 answers"), last]))
    assert main(["doctor"]) == code
    printed = capsys.readouterr().out
    assert f"{last.what}: {last.todo}" in printed
    assert "127.0.0.1 answers" in printed
