"""A program, not a test: a job on a cluster that begins without a worker node. Its argument is a folder of its own.

With another argument it runs no job, and only watches the cluster.

Each line of stdin is a command of `test_autoscaled_cluster.py`, and each line of stdout that begins with "answer" its answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import ray
from patience import patience
from ray.util.placement_group import placement_group_table
from watching import until

import evenflow as ef

FOLDER = Path(sys.argv[1])


def counted(state, row):
    n = (state or 0) + 1
    return n, {"key": row["key"], "seq": row["seq"], "n": n}


class NodeWaits:
    """The waits for nodes in a job's status while a scaling is under way."""

    def __init__(self, job):
        self._job, self.texts, self._over = job, [], threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _look(self):
        while not self.texts and not self._over.wait(0.2):
            self.texts = [wait.text for wait in self._job.status().waits_for if wait.kind == "node"]


def build():
    flow = ef.Dataflow("autoscaled")
    source = flow.read(ef.generate(rate=400, every="50ms", keys=20, string_keys=True))
    source.key_by("key").stateful_map(counted).named("counted").parallelism(1).write(ef.write_json(str(FOLDER / "out")))
    config = ef.JobConfig(
        key_groups=16,
        worker=ef.WorkerConfig(placement="pack", start_timeout=patience(180)),
        checkpoint=ef.CheckpointConfig(str(FOLDER / "checkpoints"), interval="1s"),
    )
    return flow, config


def worker_nodes():
    return sorted(node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0)


def seen(job):
    status = job.status()
    places = {worker: place.node for worker, place in status.places.items()}
    return {"nodes": worker_nodes(), "places": places, "state": status.state, "restarts": dict(status.restart_causes)}


def await_nodes(count):
    until(lambda: len(worker_nodes()) == count, lambda: f"there are {count} nodes: {worker_nodes()}", patience(120))


def drain(job, node):
    """Let Ray drain a node, and wait until the job runs without it."""
    words = ["drain-node", "--node-id", node, "--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "a test"]
    command = [sys.executable, "-m", "ray.scripts.scripts", *words, "--deadline-remaining-seconds", str(int(patience(300)))]
    subprocess.run(command, check=True, capture_output=True, timeout=patience(120))
    until(lambda: node not in seen(job)["places"].values() and job.status().state == "running", "the node is empty", patience(120))
    job.checkpoint()


def scale_out(job):
    """Add a node, which Ray's autoscaler has to start first; return what the status said meanwhile."""
    with NodeWaits(job) as waits:
        report = job.scale_out(policy="round_robin", timeout=patience(240))
    return {"added": list(report.added), "waits": waits.texts}


def watch():
    """Connect to the cluster alone; wait until its autoscaler has ended all nodes."""
    ray.init(log_to_driver=False)
    answer({"nodes": worker_nodes(), "rooms": rooms()})
    for _ in iter(sys.stdin.readline, ""):
        await_nodes(0)
        answer({"nodes": worker_nodes(), "rooms": rooms()})


def rooms():
    """List the names of placement groups that wait for CPUs, or have them."""
    return [group["name"] for group in placement_group_table().values() if group["state"] != "REMOVED"]


def answer(found):
    sys.stdout.write(f"answer {json.dumps(found)}\n")
    sys.stdout.flush()


def main():
    flow, config = build()
    job = flow.run(config=config)
    until(lambda: job.status().completed_checkpoints, "a checkpoint is complete", patience(120))
    answer(seen(job))
    for line in iter(sys.stdin.readline, ""):
        found = {}
        word, *arguments = line.split()
        if word == "scale":
            job.scale("counted", int(arguments[0]), timeout=patience(180))
        elif word == "nodes":
            await_nodes(int(arguments[0]))
        elif word == "drain":
            drain(job, arguments[0])
        elif word == "scale_out":
            found = scale_out(job)
        elif word == "ask":
            job.scale("counted", int(arguments[0]), timeout=None)
            found = {"rooms": until(rooms, "it has asked for room", patience(60))}
        elif word == "stop":
            job.stop(drain=True)
            job.wait(patience(120))
        answer({**seen(job), **found} if word != "stop" else {})


if __name__ == "__main__":
    main() if sys.argv[2:] == [] else watch()
