"""A program, not a test: jobs on nodes that Ray drains; prints observations for `test_drained_nodes.py` as JSON.

Its argument is a folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

import ray
from patience import patience
from ray._private.worker import global_worker
from ray.core.generated import autoscaler_pb2
from ray.exceptions import RayError
from ray.util.placement_group import placement_group_table
from watching import actor, until

import evenflow as ef
from evenflow.bench.papers.stela.nodes import Nodes

CPUS = 2

SOON = patience(40)
"""Seconds after which a node goes that its workers can't leave, as there is no room for them."""


def counted(state, row):
    n = (state or 0) + 1
    return n, {"key": row["key"], "seq": row["seq"], "n": n}


def build(name, folder, workers):
    """Build a source with one worker, an operator with this many, and a sink with one, chained to the operator if it has one too."""
    flow = ef.Dataflow(name)
    source = flow.read(ef.generate(rate=400, every="50ms", keys=20, string_keys=True))
    source.key_by("key").stateful_map(counted).named("counted").parallelism(workers).write(ef.write_json(str(folder / name)))
    config = ef.JobConfig(
        key_groups=16,
        worker=ef.WorkerConfig(cpus=1, start_timeout=patience(120)),
        checkpoint=ef.CheckpointConfig(str(folder / "checkpoints"), interval="1h"),
    )
    return flow, config


def read(folder):
    return [json.loads(line) for part in sorted(folder.glob("*.json*")) for line in part.read_text().splitlines()]


def drain(node, seconds):
    """Let Ray drain a node, as `ray drain-node` does, or change its deadline."""
    reason = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
    accepted, why = global_worker.gcs_client.drain_node(node, reason, "a test", int((time.time() + seconds) * 1000))
    assert accepted, why


def home_of(job):
    """Return the node and the process of a job's coordinator; None while it doesn't answer."""
    with suppress(RayError, ef.JobError):
        where = actor(job, "coordinator").__ray_call__.remote(lambda _: (ray.get_runtime_context().get_node_id(), os.getpid()))
        return ray.get(where, timeout=5)
    return None


def kill(job):
    """Kill a job's coordinator, and wait until the job runs with the next one; return that one's node."""
    _, process = until(lambda: home_of(job), "the coordinator answers", patience(60))
    os.kill(process, signal.SIGKILL)
    after = until(lambda: (home := home_of(job)) is not None and home[1] != process and home, "the next one answers", patience(60))
    until(lambda: job.status().state == "running", "the job runs again", patience(120))
    return after[0]


def running_without(job, node):
    """Return the coordinator's node once the job runs with nothing on `node`."""
    home = home_of(job)
    if home is None or home[0] == node:
        return None
    status = job.status()
    return home[0] if status.state == "running" and node not in {place.node for place in status.places.values()} else None


def home_on_a_worker_node(job, head):
    """Kill the coordinator until Ray has placed it on a node that can drain; return the node."""
    home, _ = until(lambda: home_of(job), "the coordinator answers", patience(60))
    for _ in range(20):
        if home != head:
            return home
        home = kill(job)
    raise AssertionError("the coordinator is always on the head")


def left_before_the_deadline(nodes, folder):
    """Drain the node of a detached job's coordinator. Its workers get room elsewhere once a checkpoint was taken."""
    flow, config = build("leaves", folder, workers=2)  # which fills both nodes, with the source's worker and the sink's
    job = flow.run(detached=True, config=config)
    home = home_on_a_worker_node(job, nodes.head)
    drain(home, SOON)
    waits = until(lambda: [wait.text for wait in job.status().waits_for if "goes in" in wait.text], "the node is named")
    saved = until(lambda: [one.reason for one in job.checkpoints() if one.state == "complete"], "a checkpoint is complete", patience(60))
    drain(home, patience(600))
    nodes.add(CPUS)
    after = until(lambda: running_without(job, home), "the job has left the node", patience(180))
    job.stop(drain=True)
    job.wait(patience(120))
    return {"home": home, "waits": waits, "saved": saved, "after": after, "rows": read(folder / "leaves")}


def room_of_a_lost_coordinator(folder):
    """Kill a coordinator that waits for room for workers; return the requests for room before, and once the next one runs."""
    flow, config = build("asks", folder, workers=1)
    job = flow.run(config=config)
    until(lambda: job.status().state == "running", "the job runs", patience(60))
    job.scale("counted", 8 * CPUS, timeout=None)
    before = until(pending_room, "it has asked for room")
    kill(job)
    after = pending_room()
    job.cancel()
    with suppress(ef.JobError):
        job.wait(patience(60))
    return {"before": before, "after": after}


def pending_room():
    """List the names of placement groups that wait for CPUs."""
    return [group["name"] for group in placement_group_table().values() if group["state"] == "PENDING"]


def main(folder):
    warnings.simplefilter("ignore", ResourceWarning)
    with Nodes(2, CPUS) as nodes:
        seen = {"leaves": left_before_the_deadline(nodes, folder), "room": room_of_a_lost_coordinator(folder)}
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
