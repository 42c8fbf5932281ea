"""A cluster that can't be joined is told within a bound, by every command and every call that would join it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from watching import PATIENCE, until

import evenflow as ef


@pytest.fixture
def guarded(cluster):
    if os.environ.get("RAY_AUTH_MODE") != "token":
        pytest.skip("this version of Ray starts clusters that ask for no token")


def said(*words: str, **environment: str) -> tuple[int, str]:
    """The exit code of a command in a shell of its own, and what it said in the end."""
    command = [sys.executable, "-m", "evenflow", *words]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=90, check=False)
    return done.returncode, "".join(done.stderr.splitlines()[-1:])


@pytest.mark.usefixtures("guarded")
def test_a_wrong_token_is_told_and_where_the_right_one_belongs(cluster):
    code, error = said("jobs", RAY_ADDRESS=cluster, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="wrong" * 13)
    assert (code, error[:6]) == (1, "error:")
    assert f"the Ray cluster at {cluster} refuses this process's token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to" in error


@pytest.mark.usefixtures("guarded")
def test_a_process_that_shows_no_token_is_told_so(cluster):
    code, error = said("status", "shop", RAY_ADDRESS=cluster, RAY_AUTH_MODE="disabled")
    assert code == 1
    assert "refuses this process's token" in error


def test_an_address_where_nobody_listens_is_told(cluster):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        code, error = said("jobs", RAY_ADDRESS=f"127.0.0.1:{free.getsockname()[1]}")
    assert code == 1
    assert "no Ray cluster answers at" in error
    assert "set RAY_ADDRESS to" in error


def test_a_head_that_hangs_is_told():
    with socket.socket() as hung:
        hung.bind(("127.0.0.2", 0))  # Ray takes 127.0.0.1 for the address of the machine's network
        hung.listen()
        code, error = said("metrics", "shop", RAY_ADDRESS=f"127.0.0.2:{hung.getsockname()[1]}")
    assert code == 1
    assert "has not answered within 15 s" in error


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:port"])
def test_an_address_that_is_none_is_told(address):
    code, error = said("jobs", RAY_ADDRESS=address)
    assert (code, error[:6]) == (1, "error:")


@pytest.mark.usefixtures("guarded")
def test_a_flow_is_not_started_on_a_cluster_that_refuses_it(cluster):
    code = "import evenflow as ef\nf = ef.Dataflow('f')\nf.read(ef.from_items([1])).write(ef.to_list([]))\nf.run()"
    environment = {**os.environ, "RAY_ADDRESS": cluster, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "wrong" * 13}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=1.5 * PATIENCE, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("evenflow.engine.errors.ClusterError: the Ray cluster at")


def test_a_command_about_a_running_job_ends_with_what_it_was_asked_for(cluster):
    flow = ef.Dataflow("watched")
    flow.read(ef.generate(rate=500, every="50ms", keys=5)).key_by("key").aggregate(n=ef.count()).write(ef.to_callback(lambda row: None))
    job = flow.run()
    until(lambda: any(figures.rows_in for figures in job.metrics()), "the job has begun")
    environment = {**os.environ, "RAY_ADDRESS": cluster, "COLUMNS": "80"}
    for words in (["metrics", "watched", "--totals"], ["status", "watched"]):
        command = [sys.executable, "-m", "evenflow", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert max(map(len, done.stdout.splitlines())) <= 80
    job.stop()
    job.wait("60s")
