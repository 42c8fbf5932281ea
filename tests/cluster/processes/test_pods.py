"""A program runs, is saved, stops and continues as its resources on Kubernetes say. Two nodes of a Ray cluster, with the variables
and the parameters of the rendered pods, are the pods of the head and of a worker.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
import yaml
from custom_kinds import pods_of
from patience import patience
from ports import free_port, listens
from ray.job_submission import JobSubmissionClient
from ray.util.state import list_actors, list_nodes
from ray_node import ray_node
from ray_settings import RAY_SETTINGS
from watching import processes_of, until

from evenflow.cli.command_line import main

PATIENCE = patience(120)
PROGRAM = """
import sys
import evenflow as ef

def numbers(partition, position):
    for n in range(position or 0, 1_000_000):
        yield ({"n": n, "key": n % 7}, n + 1) if n % 5 else None
        if not n % 5:
            yield {"n": n, "key": n % 7}, n + 1

def count(seen, row):
    return (seen or 0) + 1, {"n": row["n"], "seen": (seen or 0) + 1}

flow = ef.Dataflow("stream")
rows = flow.read(ef.from_generator(numbers, poll_every="20ms")).key_by("key").stateful_map(count)
rows.write(ef.write_parquet(sys.argv[1]))
flow.run(config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval="500ms"))).wait()
"""


@dataclass
class Pods:
    """The running nodes: the variables of the head's container, the program's command, and Ray's dashboard."""

    variables: dict[str, str]
    entrypoint: str
    client: JobSubmissionClient
    dashboard: str
    metrics: int
    probes: list[str]
    output: Path

    def command(self, *words: str) -> subprocess.Popen[str]:
        """Run a command in the head's container."""
        line = [sys.executable, "-W", "ignore", "-m", "evenflow", *words]
        return subprocess.Popen(line, env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def said(self, *words: str) -> str:
        with self.command(*words) as process:
            printed, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, printed
        return printed

    def submit(self) -> str:
        return self.client.submit_job(entrypoint=self.entrypoint)

    def until_rows(self, more_than: int = 0) -> int:
        """Wait until the job has committed more rows; return their number."""
        until(lambda: len(self.rows()) > more_than, lambda: f"rows are committed: {self.jobs()}", PATIENCE)
        return len(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        return pq.read_table(self.output).to_pylist() if self.output.exists() and list(self.output.glob("part-*")) else []

    def jobs(self) -> str:
        found = [(job.submission_id, job.status) for job in self.client.list_jobs()]
        return "".join(f"{name}: {status}\n{self.client.get_job_logs(name)}" for name, status in found)


@pytest.fixture
def pods(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Pods]:
    program, output, metrics = tmp_path / "job.py", tmp_path / "out", free_port()
    program.write_text(PROGRAM)
    words = ["k8s", "render", str(program), "--image", "job:1", "--workers", "1:2", "--checkpoint", str(tmp_path / "checkpoints")]
    assert main([*words, "--volume", f"shared:{tmp_path}", "--metrics-port", str(metrics), "--arguments", str(output)]) == 0
    spec = next(each for each in yaml.safe_load_all(capsys.readouterr().out) if each["kind"] == "RayJob")["spec"]
    head, worker = (_variables(each) for each in list(pods_of({"spec": spec["rayClusterSpec"]}))[:2])
    probe = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["livenessProbe"]["httpGet"]["path"]
    own, gcs, dashboard, agents = folder / "pods", free_port(), free_port(), [free_port() for _ in range(3)]
    own.mkdir()
    place = {"TMPDIR": str(own), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **RAY_SETTINGS}
    variables = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"} | place | head
    parameters = [f"--{name}={value}" for name, value in spec["rayClusterSpec"]["headGroupSpec"]["rayStartParams"].items()]
    assert "--num-cpus=0" in parameters
    with ExitStack() as nodes:
        parameters += ["--head", f"--port={gcs}", f"--dashboard-port={dashboard}", "--include-dashboard=true"]
        nodes.enter_context(ray_node(own / "head.log", [*parameters, _agent(agents[0])], variables))
        until(lambda: listens(gcs) and listens(dashboard), "the head is up", PATIENCE)
        address = f"http://127.0.0.1:{dashboard}"
        client = until(lambda: _client(address), "the dashboard takes jobs", PATIENCE)
        for count, agent in enumerate(agents[1:], 2):
            parameters = [f"--address=127.0.0.1:{gcs}", "--num-cpus=4"]
            nodes.enter_context(ray_node(own / f"{agent}.log", [*parameters, _agent(agent)], os.environ | place | worker))
            # One after another: nodes that start in one folder at the same time share the names of their files.
            until(lambda: _count(address) == count, (own / f"{agent}.log").read_text, PATIENCE)  # noqa: B023 -- it is called at once
        probes = [f"http://127.0.0.1:{agent}{probe}" for agent in agents]
        yield Pods(variables | {"RAY_ADDRESS": f"127.0.0.1:{gcs}"}, spec["entrypoint"], client, address, metrics, probes, output)
    until(lambda: not processes_of(own), f"no process is left: {processes_of(own)}")


def _variables(pod: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in pod["template"]["spec"]["containers"][0]["env"]}


def _agent(port: int) -> str:
    return f"--dashboard-agent-listen-port={port}"


def _count(address: str) -> int:
    return len(list_nodes(address, raise_on_missing_output=False))


def _client(address: str) -> JobSubmissionClient | None:
    try:
        client = JobSubmissionClient(address)
        client.list_jobs()
    except (ConnectionError, RuntimeError):
        return None
    return client


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_a_program_runs_is_saved_stops_and_continues_as_its_pods_say(pods):
    for probe in pods.probes:
        with urlopen(probe) as answer:
            assert answer.status == 200
    first = pods.submit()
    done = pods.until_rows()
    with urlopen(f"http://127.0.0.1:{pods.metrics}/metrics") as answer:
        assert 'evenflow_job_state{job="stream",state="running"} 1.0' in answer.read().decode()
    head = {node.node_id for node in list_nodes(pods.dashboard) if node.is_head_node}
    places = {actor.name: actor.node_id in head for actor in list_actors(pods.dashboard) if (actor.name or "").startswith("stream/")}
    assert places.pop("stream/coordinator"), "the coordinator is in the head, where Prometheus finds it"
    assert places, "there are workers"
    assert not any(places.values()), "no worker is in the head"

    assert re.search(r"job `stream` has checkpoint \d+", pods.said("k8s", "pre-stop"))
    done = pods.until_rows(done)

    pods.client.stop_job(first)
    until(lambda: pods.client.get_job_status(first).is_terminal(), "the program has ended", PATIENCE)
    log = pods.client.get_job_logs(first)
    assert "job `stream` is stopping because of a SIGTERM" in log
    assert "cancelled" not in log
    assert pods.said("k8s", "pre-stop").strip() == "", "no job is left"

    follower = ["k8s", "submit", "--address", pods.dashboard, "--run", "1", "--entrypoint", pods.entrypoint]
    with pods.command(*follower) as one:
        done = pods.until_rows(len(pods.rows()))
        one.terminate()
        printed, _ = one.communicate(timeout=PATIENCE)
        assert one.returncode == 143
        assert "job `stream` continues its run from checkpoint" in printed
    with pods.command(*follower) as other:
        pods.until_rows(done)
        assert "is stopping" in pods.said("stop", "stream")
        printed, _ = other.communicate(timeout=PATIENCE)
        assert other.returncode == 0, printed
        assert "is running already" in printed
        assert "has ended: succeeded" in printed
    rows = sorted(pods.rows(), key=lambda row: row["n"])
    assert [row["n"] for row in rows] == list(range(len(rows)))
    assert [row["seen"] for row in rows] == [n // 7 + 1 for n in range(len(rows))]
