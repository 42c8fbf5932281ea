"""A program, not a test: a job on several hosts, started on the first; writes observations for `test_several_hosts.py` as JSON."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import ray
from hosts import cut
from patience import patience
from watching import until
from wire import Wire, touches

import evenflow as ef
from evenflow.actors.cluster import start_cluster
from evenflow.actors.processes.process import NAMESPACE

FIRST = "10.77.0.1"
PATIENCE = patience(120)
SECRET, KEY = "what-a-record-says", "the-key-of-records"
"""Texts of the program, and so of Ray's messages. In the records they are written backwards."""


def start(name, folder):
    """Run a detached job: rows with a secret, which are counted per key and written to files, before and after."""

    def confide(row):
        return {"seq": row["seq"], "key": f"{KEY[::-1]}-{row['key']}", "text": f"{SECRET[::-1]}-{row['seq']}"}

    def numbered(state, row):
        n = (state or 0) + 1
        return n, {"key": row["key"], "n": n, "text": row["text"]}

    flow = ef.Dataflow(name)
    source = flow.read(ef.generate(rate=500, every="50ms", keys=20)).parallelism(1).map(confide).named("source")
    source.write(ef.write_parquet(folder / "rows", name="to_rows"))
    counted = source.key_by("key").stateful_map(numbered).named("counted").parallelism(2)
    counted.write(ef.write_parquet(folder / "counted", name="to_counted"))
    config = ef.JobConfig(
        key_groups=16,
        worker=ef.WorkerConfig(placement="spread", cpus=0.5, heartbeat_timeout="10s", start_timeout="120s"),
        metrics=ef.MetricsConfig(window="200ms"),
        checkpoint=ef.CheckpointConfig(str(folder / "checkpoints"), interval="500ms"),
    )
    return flow.run(runtime="ray", detached=True, config=config)


def start_elsewhere(folder):
    """Run a job whose coordinator is not on the first host; Ray chooses one at random."""
    for number in range(20):
        name = f"spread-{number}"
        job = start(name, folder / name)
        if home(job) != FIRST:
            return job
        job.cancel()
    raise AssertionError("the coordinator was on the first host 20 times")


def ask(actor, question):
    return ray.get(ray.get_actor(actor, namespace=NAMESPACE).__ray_call__.remote(question), timeout=PATIENCE)


def home(job):
    """Return the host of the job's coordinator."""
    return ask(f"{job.status().name}/coordinator", lambda _: ray.util.get_node_ip_address())


def hosts_of(job):
    hosts = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}
    return {worker: hosts.get(place.node) for worker, place in job.status().places.items()}


def goes_on(job, *lost):
    """Wait until no worker is on the lost hosts, and checkpoints are completed again."""

    def runs():
        with suppress(ef.JobError):  # its coordinator was lost too, and is not back yet
            return job.status().state == "running" and set(lost).isdisjoint(hosts_of(job).values())

    until(runs, f"the job runs without {lost}", PATIENCE)
    newest = max((report.number for report in job.checkpoints()), default=0)
    until(lambda: any(report.state == "complete" and report.number > newest for report in job.checkpoints()), "checkpoints go on", PATIENCE)


def overheard(job, wire):
    """Return the readable parts of a job on the wire: in its own connections, and in Ray's."""
    workers, own = hosts_of(job), set()
    for worker in workers:
        address = ask(f"{job.status().name}/{worker}", lambda worker: worker._run().address.tcp)
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        own.add((host, int(port)))
    until(lambda: wire.carried(own) > 100_000, "records cross between hosts", PATIENCE)
    goes_on(job)
    seen = {
        "hosts": sorted(set(workers.values())),
        "keys_in_its_own": sum(touches(stream, own) for stream in wire.with_text(KEY[::-1])),
    }
    plain = "the same in a plain connection"
    with socket.create_connection(next(end for end in sorted(own) if end[0] != FIRST), timeout=patience(60)) as stranger:
        stranger.sendall(plain.encode())
        until(lambda: any(touches(stream, own) for stream in wire.with_text(plain)), "the plain connection is seen")
    return seen


def lost(job, pids):
    """Lose a host without the job's coordinator with all its processes, then the network of the coordinator's host."""
    disconnected = home(job)
    (killed,) = set(pids) - {FIRST, disconnected}
    before = hosts_of(job)
    os.kill(pids[killed], signal.SIGKILL)
    goes_on(job, killed)
    cut(int(disconnected.rpartition(".")[2]))
    goes_on(job, killed, disconnected)
    return {"killed": killed, "disconnected": disconnected, "before": before, "after": hosts_of(job)}


def correct(folder):
    """Return the number of result rows; 0 if a row is missing, repeated or counted wrongly."""
    rows, counted = (
        pq.read_table(folder / what, columns=[*columns, "key"]).to_pylist() for what, columns in (("rows", ["seq"]), ("counted", ["n"]))
    )
    expected = sorted((key, n + 1) for key, count in Counter(row["key"] for row in rows).items() for n in range(count))
    whole = sorted(row["seq"] for row in rows) == list(range(len(rows)))
    return len(rows) if whole and sorted((row["key"], row["n"]) for row in counted) == expected else 0


def join():
    """Connect to Ray as evenflow does, once it is available."""
    os.environ["RAY_ADDRESS"] = f"{FIRST}:6379"

    def joined():
        with suppress(ef.ClusterError):
            start_cluster()
            return True

    until(joined, "the first host has a Ray cluster", PATIENCE)


def told(**environment):
    """Return the error of a command that joins this cluster with another environment."""
    command = [sys.executable, "-m", "evenflow", "jobs"]
    done = subprocess.run(command, env=os.environ | environment, check=False, capture_output=True, text=True, timeout=PATIENCE)
    return done.stderr.splitlines()[-1] if done.returncode else None


def strangers():
    """Return the errors for processes without TLS, and with a certificate of another authority, at a cluster with TLS."""
    other = Path(os.environ["RAY_TLS_SERVER_CERT"]).with_name("other.pem")
    certificate = {"RAY_TLS_SERVER_CERT": str(other), "RAY_TLS_SERVER_KEY": str(other.with_suffix(".key"))}
    return {"without": told(RAY_USE_TLS="0"), "other": told(**certificate)}


def main(folder, bridge, pids):
    warnings.simplefilter("ignore", ResourceWarning)
    wire = Wire(bridge)
    join()
    until(lambda: sum(node["Alive"] for node in ray.nodes()) == len(pids), "all hosts are in the cluster", PATIENCE)
    job = start_elsewhere(folder)
    seen = overheard(job, wire)
    if len(pids) > 2:
        seen |= lost(job, pids)
    if "RAY_USE_TLS" in os.environ:
        seen["strangers"] = strangers()
    job.stop(drain=True)
    job.wait(patience(60))
    readable = {"records": SECRET[::-1], "keys": KEY[::-1], "program": SECRET, "token": os.environ["RAY_AUTH_TOKEN"]}
    seen["readable"] = {what: len(wire.with_text(text)) for what, text in readable.items()}
    seen["rows"] = correct(folder / job.status().name)
    (folder / "seen").write_text(json.dumps(seen))  # Ray prints when it likes


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
