"""A program, not a test: jobs on a cluster of three nodes on this machine; prints what `test_placement.py` looks at as JSON.

A process can be connected to one cluster of Ray's only, and those of the other tests share one with a single node.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import ray
from ray.cluster_utils import Cluster
from watching import until

import evenflow as ef
from evenflow.actors.processes.process import NAMESPACE


def build(name):
    """A source and an operator with a state per key; what the latter gives, and the rows that the source gave."""

    def numbered(state, row):
        n = (state or 0) + 1
        return n, {"key": row["key"], "n": n}

    flow, rows, results = ef.Dataflow(name), [], []
    source = flow.read(ef.generate(rate=1_000, every="50ms", keys=50, string_keys=True))
    source.write(ef.to_list(rows, name="to_rows"))
    source.key_by("key").stateful_map(numbered).named("numbered").parallelism(2).write(ef.to_list(results, name="to_results"))
    return flow, rows, results


def correct(rows, results):
    """Whether nothing is missing, twice, or counted wrongly."""
    whole = sorted(row["seq"] for row in rows) == list(range(len(rows)))
    counts = Counter(row["key"] for row in rows)
    expected = sorted((key, n + 1) for key, count in counts.items() for n in range(count))
    return whole and sorted((row["key"], row["n"]) for row in results) == expected


def nodes_of(job):
    return {worker: place.node for worker, place in job.status().places.items()}


def processes_of(job):
    return {worker: place.process.removeprefix(f"{job.name}/") for worker, place in job.status().places.items()}


@contextmanager
def running(flow, config):
    job = flow.run(runtime="ray", config=config)
    try:
        yield job
    finally:
        with suppress(ef.JobError):  # it has ended
            job.cancel()
            job.wait("30s")


def goes_on(rows):
    before = len(rows)
    until(lambda: len(rows) > before + 500, "the stream goes on")


def packed(cluster):
    """A job that begins alone on a node, lags behind, gets a node, and gives it back; it saves no checkpoints."""

    def slow(row):
        time.sleep(0.002)
        return row

    flow, rows = ef.Dataflow("packed"), []
    flow.read(ef.generate(rate=3_000, every="50ms", keys=50)).map(slow).named("slow").parallelism(2).write(ef.to_list(rows))
    config = ef.JobConfig(
        key_groups=16,
        worker=ef.WorkerConfig(placement="pack", cpus=0.5),
        metrics=ef.MetricsConfig(window="200ms"),
        checkpoint=ef.CheckpointConfig(interval="500ms"),
    )
    with running(flow, config) as job:
        seen = {"alone": nodes_of(job)}
        for _ in range(2):
            cluster.add_node(num_cpus=2, object_store_memory=80 << 20)
        job.scale("slow", 4)
        seen["before"] = nodes_of(job)
        until(lambda: all(figures.rows_in_per_second > 0 for figures in job.metrics()), "all workers have measured")
        out = job.scale_out(nodes=1)
        seen |= {"after": nodes_of(job), "added": out.added, "parallelism": out.parallelism}
        goes_on(rows)
        (back,) = job.scale_in(nodes=1)
        seen |= {"removed": back.removed, "replaced": back.replaced, "at_the_end": nodes_of(job)}
        goes_on(rows)
        job.stop()
        job.wait("30s")
        return {**seen, "correct": sorted(row["seq"] for row in rows) == list(range(len(rows)))}


def spread(cluster, folder):
    """Warm spares, giving a node back, and losing another with all that ran on it."""
    flow, rows, results = build("spread")
    config = ef.JobConfig(
        key_groups=16,
        worker=ef.WorkerConfig(placement="spread", cpus=0.5, warm_spares=1),
        metrics=ef.MetricsConfig(window="200ms"),
        checkpoint=ef.CheckpointConfig(str(folder / "checkpoints"), interval="500ms"),
    )
    with running(flow, config) as job:
        seen = {"before": nodes_of(job)}
        goes_on(rows)
        until(lambda: job.status().spares == 1, "a spare is there")
        job.scale("numbered", 3)
        seen["scaled"] = processes_of(job)
        until(lambda: job.status().spares == 1, "another spare is there")
        os.kill(ray.get(ray.get_actor("spread/numbered-0", namespace=NAMESPACE).__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)
        until(lambda: processes_of(job).get("numbered-0", "numbered-0") != "numbered-0", "a spare has taken the place of the lost worker")
        seen["recovered"] = processes_of(job)
        until(lambda: job.status().state == "running", "the job runs again")
        goes_on(rows)
        (report,) = job.scale_in(nodes=1)
        seen |= {"removed": report.removed, "after": nodes_of(job), "parallelism": report.parallelism, "replaced": report.replaced}
        goes_on(rows)
        head = ray.get_runtime_context().get_node_id()
        lost = next(node for node in nodes_of(job).values() if node != head)
        cluster.remove_node(next(node for node in cluster.list_all_nodes() if node.node_id == lost), allow_graceful=False)

        def elsewhere():
            nodes = nodes_of(job)
            return (
                nodes if job.status().state == "running" and nodes.keys() == seen["after"].keys() and lost not in nodes.values() else None
            )

        seen |= {"lost": lost, "survived": until(elsewhere, "all workers run, and none on the lost node")}
        goes_on(rows)
        job.stop()
        job.wait("30s")
        return {**seen, "rows": len(rows), "correct": correct(rows, results)}


def main(folder):
    warnings.simplefilter("ignore", ResourceWarning)
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 -- Ray's spelling
    arguments = {"num_cpus": 2, "object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=arguments)
    try:
        ray.init(cluster.address, namespace="several", log_to_driver=False)
        seen = {"packed": packed(cluster), "spread": spread(cluster, folder)}
    finally:
        ray.shutdown()
        cluster.shutdown()
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
