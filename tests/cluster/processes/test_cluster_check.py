"""An unavailable cluster is reported within a bound, by every command and every call that would join it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest
from watching import PATIENCE, until

import evenflow as ef

pytestmark = pytest.mark.nightly


@pytest.fixture
def guarded(cluster):
    if os.environ.get("RAY_AUTH_MODE") != "token":
        pytest.skip("this version of Ray starts clusters that ask for no token")


COMMANDS = """
import json, os, sys
from evenflow.cli import main

for address, *words in json.loads(sys.argv[1]):
    os.environ["RAY_ADDRESS"] = address
    print("exit code", main(words), file=sys.stderr)
"""

FLOW = """
import evenflow as ef

flow = ef.Dataflow("f")
flow.read(ef.from_items([1])).write(ef.to_list([]))
flow.run()
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a process with this environment."""
    command, env = [sys.executable, *arguments], {**os.environ, "COLUMNS": "80", **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=1.5 * PATIENCE, check=False)


def answers(commands: list[list[str]], **environment: str) -> list[tuple[str, str]]:
    """Run commands in one process; return their last words and exit codes. Each command is an address and its arguments."""
    lines = run("-c", COMMANDS, json.dumps(commands), **environment).stderr.splitlines()
    return [(lines[number - 1], line) for number, line in enumerate(lines) if line.startswith("exit code")]


@pytest.mark.usefixtures("guarded")
def test_a_wrong_token_is_an_error_that_says_where_the_right_one_belongs_and_starts_no_flow(cluster):
    jobs = json.dumps([[cluster, "jobs"]])
    done = run("-c", COMMANDS + FLOW, jobs, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="wrong" * 13)
    assert done.returncode == 1
    refused = f"the Ray cluster at {cluster} rejects this process's token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to"
    error, code, *_, last = done.stderr.splitlines()
    assert error.startswith(f"error: {refused}")
    assert code == "exit code 1"
    assert last.startswith(f"evenflow.engine.errors.ClusterError: {refused}")


@pytest.mark.usefixtures("guarded")
def test_a_process_without_a_token_gets_an_error_that_says_so(cluster):
    done = run("-m", "evenflow", "status", "shop", RAY_ADDRESS=cluster, RAY_AUTH_MODE="disabled")
    assert done.returncode == 1
    assert "rejects this process's token" in done.stderr.splitlines()[-1]


def test_an_error_names_the_address_where_no_cluster_answers():
    with socket.socket() as free, socket.socket() as hung:
        free.bind(("127.0.0.1", 0))
        hung.bind(("127.0.0.2", 0))  # Ray takes 127.0.0.1 for the address of the machine's network
        hung.listen()
        nobody, hangs = (f"{host}:{port}" for host, port in (free.getsockname(), hung.getsockname()))
        said = answers([[nobody, "jobs"], [hangs, "metrics", "shop"], ["nonsense", "jobs"], ["127.0.0.1:port", "jobs"]])
    assert [(error[:6], code) for error, code in said] == [("error:", "exit code 1")] * 4
    (nobody_said, _), (hung_said, _), *_ = said
    assert "no Ray cluster answers at" in nobody_said
    assert "set RAY_ADDRESS to" in nobody_said
    assert f"{hangs} has not answered within 15 s" in hung_said


def test_a_command_about_a_running_job_prints_its_result_and_ends(cluster):
    flow = ef.Dataflow("watched")
    flow.read(ef.generate(rate=500, every="50ms", keys=5)).key_by("key").aggregate(n=ef.count()).write(ef.to_callback(lambda row: None))
    job = flow.run()
    until(lambda: any(figures.rows_in for figures in job.metrics()), "the job has begun")
    done = run("-c", COMMANDS, json.dumps([[cluster, "metrics", "watched", "--totals"], [cluster, "status", "watched"]]))
    assert (done.returncode, done.stderr) == (0, "exit code 0\n" * 2)
    assert "generate" in done.stdout
    assert "running" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    job.stop(drain=True)
    job.wait("60s")
