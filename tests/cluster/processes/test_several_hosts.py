"""Jobs on hosts with separate networks: `ray_on_hosts.py` creates these and a Ray cluster, `several_hosts.py` runs the jobs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hosts import impossible, in_hall
from patience import patience
from ray_settings import OF_PROGRAMS, RAY_SETTINGS
from watching import SUPPORT

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(420),
]  # a process of Ray's takes from one second to ten to start, by how busy the machine is


def run(count, *certificate):
    """Run the program on `count` hosts and return its observations."""
    if why := impossible():
        pytest.skip(why)
    program = SUPPORT / "ray_on_hosts.py"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")} | RAY_SETTINGS
    environment["PYTHONPATH"] = OF_PROGRAMS
    with TemporaryDirectory(prefix="ef-", dir="/tmp") as folder:  # short, because it contains sockets
        command = in_hall([sys.executable, str(program), folder, str(count), *certificate])
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=patience(400))
        assert done.returncode == 0, done.stderr[-5_000:]
        return json.loads(Path(folder, "seen").read_text())


@pytest.fixture(scope="module")
def seen():
    return run(3)


def test_a_dead_host_and_then_the_cut_network_of_the_coordinators_do_not_change_the_output(seen):
    lost = {seen["killed"], seen["disconnected"]}
    assert len(lost) == 2
    assert lost < set(seen["before"].values())
    assert lost.isdisjoint(seen["after"].values())
    assert set(seen["after"]) == set(seen["before"])
    assert seen["rows"] > 500


def test_records_are_not_readable_between_hosts_and_keys_only_in_rays_messages(seen):
    assert len(seen["hosts"]) == 3
    assert seen["keys_in_its_own"] == 0
    readable = seen["readable"]
    assert readable.pop("records") == 0
    assert all(readable.values()), f"without TLS of Ray's these can be read: {readable}"


def certificate(path):
    """Create a certificate of a new authority, for two hosts."""
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:10.77.0.1,IP:10.77.0.2"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=evenflow", "-addext", names]
    subprocess.run([*command, "-keyout", path.with_suffix(".key"), "-out", path], check=True, capture_output=True, timeout=patience(60))
    return str(path)


@pytest.fixture(scope="module")
def with_tls(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing")
    folder = tmp_path_factory.mktemp("certificates")
    certificate(folder / "other.pem")
    return run(2, certificate(folder / "node.pem"))


def test_a_job_runs_with_rays_tls_and_nothing_of_it_is_readable_between_hosts(with_tls):
    assert len(with_tls["hosts"]) == 2
    assert with_tls["rows"] > 500
    assert set(with_tls["readable"].values()) == {0}


def test_the_error_of_a_client_without_a_certificate_says_that_the_cluster_may_want_one(with_tls):
    for said in with_tls["strangers"].values():
        assert "no Ray cluster answers at 10.77.0.1:6379" in said
        assert "one with TLS answers only to those with RAY_USE_TLS=1 and a certificate of its authority" in said
