"""A program, not a test: jobs on several nodes of this machine; prints observations for `test_placement.py` and
`test_stela_on_ray.py` as JSON.

A process can be connected to one Ray cluster only, and the other tests share one with a single node.
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
from patience import patience
from watching import until

import evenflow as ef
from evenflow.actors.processes.process import NAMESPACE
from evenflow.bench.papers.stela.flow import TopologyFlow
from evenflow.bench.papers.stela.load import Load
from evenflow.bench.papers.stela.nodes import Nodes
from evenflow.scheduler.protocol.requests import ShowView
from evenflow.views.policy_snapshots import PolicySnapshots

CPUS, SLOTS = 8, 4
"""The CPUs of a node, and how many workers of the jobs `packed` and `spread` have room on it."""


def build(name, workers=2):
    """Build a source and an operator with a state per key; return the flow, the source's rows and the operator's results."""

    def numbered(state, row):
        n = (state or 0) + 1
        return n, {"key": row["key"], "n": n}

    flow, rows, results = ef.Dataflow(name), [], []
    source = flow.read(ef.generate(rate=1_000, every="50ms", keys=50, string_keys=True))
    source.write(ef.to_list(rows, name="to_rows"))
    source.key_by("key").stateful_map(numbered).named("numbered").parallelism(workers).write(ef.to_list(results, name="to_results"))
    return flow, rows, results


def correct(rows, results):
    """Return True if no row is missing, repeated, or counted wrongly."""
    whole = sorted(row["seq"] for row in rows) == list(range(len(rows)))
    counts = Counter(row["key"] for row in rows)
    expected = sorted((key, n + 1) for key, count in counts.items() for n in range(count))
    return whole and sorted((row["key"], row["n"]) for row in results) == expected


def nodes_of(job):
    return {worker: place.node for worker, place in job.status().places.items()}


def placed(job):
    """Return the job and its nodes as a page knows them."""
    page = PolicySnapshots()
    page.add(job._runtime.ask(ShowView()))
    return page.placed()


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
            job.wait(patience(120))


def goes_on(rows):
    before = len(rows)
    until(lambda: len(rows) > before + 500, "the stream goes on")


def packed(nodes):
    """Run a job that begins alone on a node, lags behind, gets a node, and gives it back; it saves no checkpoints."""

    def slow(row):
        time.sleep(0.002)
        return row

    flow, rows = ef.Dataflow("packed"), []
    flow.read(ef.generate(rate=3_000, every="50ms", keys=50)).map(slow).named("slow").parallelism(2).write(ef.to_list(rows))
    config = ef.JobConfig(
        key_groups=16,
        worker=ef.WorkerConfig(placement="pack", cpus=CPUS / SLOTS),
        metrics=ef.MetricsConfig(window="200ms"),
        checkpoint=ef.CheckpointConfig(interval="500ms"),
    )
    with running(flow, config) as job:
        seen = {"alone": nodes_of(job)}
        for _ in range(2):
            nodes.add(CPUS)
        job.scale("slow", 4)
        seen["before"] = nodes_of(job)
        until(lambda: all(figures.rows_in_per_second > 0 for figures in job.metrics()), "all workers have measured")
        seen["planned_out"] = placed(job).more_nodes(1, "stela").added
        out = job.scale_out(nodes=1)
        seen |= {"after": nodes_of(job), "added": out.added, "parallelism": out.parallelism}
        goes_on(rows)
        seen["planned_in"] = placed(job).one_node_less(None, "stela").removed
        (back,) = job.scale_in(nodes=1)
        seen |= {"removed": back.removed, "replaced": back.replaced, "at_the_end": nodes_of(job)}
        goes_on(rows)
        job.stop(drain=True)
        job.wait(patience(120))
        return {**seen, "correct": sorted(row["seq"] for row in rows) == list(range(len(rows)))}


def spread(nodes, folder):
    """Test warm spares, giving a node back, and losing another with all its processes."""
    flow, rows, results = build("spread")
    config = ef.JobConfig(
        key_groups=16,
        worker=ef.WorkerConfig(placement="spread", cpus=CPUS / SLOTS, warm_spares=1),
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
        lost = min(nodes_of(job).values())
        cluster = nodes._cluster
        cluster.remove_node(next(node for node in cluster.list_all_nodes() if node.node_id == lost), allow_graceful=False)

        def elsewhere():
            nodes = nodes_of(job)
            return (
                nodes if job.status().state == "running" and nodes.keys() == seen["after"].keys() and lost not in nodes.values() else None
            )

        seen |= {"lost": lost, "survived": until(elsewhere, "all workers run, and none on the lost node")}
        goes_on(rows)
        job.stop(drain=True)
        job.wait(patience(120))
        return {**seen, "rows": len(rows), "correct": correct(rows, results)}


def without_cpus(folder):
    """Test processes without reserved CPUs, which Ray may place anywhere; then give a node back."""
    flow, rows, results = build("without_cpus", workers=4)
    config = ef.JobConfig(
        key_groups=16,
        worker=ef.WorkerConfig(placement="spread", cpus=0),
        metrics=ef.MetricsConfig(window="200ms"),
        checkpoint=ef.CheckpointConfig(str(folder / "without_cpus"), interval="500ms"),
    )
    with running(flow, config) as job:
        seen = {"before": nodes_of(job)}
        until(lambda: all(figures.rows_in_per_second > 0 for figures in job.metrics()), "all workers have measured")
        (report,) = job.scale_in(nodes=1)
        seen |= {"removed": report.removed, "replaced": report.replaced, "after": nodes_of(job)}
        goes_on(rows)
        job.stop(drain=True)
        job.wait(patience(120))
        return {**seen, "cpus": cpus_of_nodes(), "correct": correct(rows, results)}


def beside_a_lost_node(nodes, folder):
    """Start a job while Ray still considers a node alive whose processes have all been killed."""
    for _ in range(3):
        node = nodes.add(CPUS)
        nodes._cluster.remove_node(node, allow_graceful=False)
        thought_alive = node.node_id in cpus_of_nodes()
        if thought_alive:
            break
    flow, rows, results = build("beside_a_lost_node", workers=4)
    config = ef.JobConfig(
        key_groups=16,
        worker=ef.WorkerConfig(placement="spread", cpus=0),
        checkpoint=ef.CheckpointConfig(str(folder / "beside_a_lost_node"), interval="500ms"),
    )
    with running(flow, config) as job:
        goes_on(rows)
        places = nodes_of(job)
        job.stop(drain=True)
        job.wait(patience(120))
        return {"lost": node.node_id, "thought_alive": thought_alive, "places": places, "correct": correct(rows, results)}


def with_resources(nodes, folder):
    """Run an operator on the one node with its resources; scale it, kill a worker, and lose the node when there is another."""
    first = nodes.add(CPUS, {"device": 2})
    flow, rows, results = ef.Dataflow("with_resources"), [], []

    def numbered(state, row):
        n = (state or 0) + 1
        return n, {"key": row["key"], "n": n}

    source = flow.read(ef.generate(rate=1_000, every="50ms", keys=50, string_keys=True))
    source.write(ef.to_list(rows, name="to_rows"))
    states = source.key_by("key").stateful_map(numbered).named("numbered").parallelism(1).resources(cpus=0.5, custom={"device": 1})
    states.write(ef.to_list(results, name="to_results"))
    config = ef.JobConfig(
        key_groups=16,
        worker=ef.WorkerConfig(cpus=0, warm_spares=1),
        metrics=ef.MetricsConfig(window="200ms"),
        checkpoint=ef.CheckpointConfig(str(folder / "with_resources"), interval="500ms"),
    )
    with running(flow, config) as job:

        def places_of(operator):
            return [node for worker, node in nodes_of(job).items() if worker.startswith(f"{operator}-")]

        seen = {"first": first.node_id, "began": nodes_of(job)}
        goes_on(rows)
        until(lambda: job.status().spares == 1, "a spare is there")
        job.scale("numbered", 2)
        seen["scaled"] = nodes_of(job)
        try:
            job.scale("numbered", 3)
        except ef.RequestError as error:
            seen["full"] = str(error)
        goes_on(rows)
        worker = ray.get_actor(job.status().places["numbered-0"].process, namespace=NAMESPACE)
        own = worker.__ray_call__.remote(lambda _: (os.getpid(), ray.get_runtime_context().get_assigned_resources()))
        pid, seen["assigned"] = ray.get(own)
        os.kill(pid, signal.SIGKILL)
        until(lambda: sum(job.status().restart_causes.values()) and job.status().state == "running", "the job has gone back")
        seen["recovered"] = nodes_of(job)
        goes_on(rows)
        seen["second"] = nodes.add(CPUS, {"device": 2}).node_id
        nodes._cluster.remove_node(first, allow_graceful=False)
        until(lambda: set(places_of("numbered")) == {seen["second"]} and job.status().state == "running", "its workers are on the other")
        seen["moved"] = nodes_of(job)
        goes_on(rows)
        job.stop(drain=True)
        job.wait(patience(120))
        return {**seen, "correct": correct(rows, results)}


def cpus_of_nodes():
    return {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]}


def star(nodes, folder):
    """Give Stela's topology of that name, on two nodes, a third one."""
    flow = TopologyFlow.of("star", load=Load())
    config = ef.JobConfig(
        worker=ef.WorkerConfig(cpus=1.0, start_timeout="2m"),
        metrics=ef.MetricsConfig(window="500ms"),
        checkpoint=ef.CheckpointConfig(str(folder / "star"), interval="500ms"),
    )
    with running(flow.flow, config) as job:
        until(lambda: all(flow.rows.values()), "rows come to every sink", patience(120))
        node = nodes.add(3)
        until(lambda: all(figures.rows_in_per_second > 0 for figures in job.metrics()), "all workers have measured")
        report = job.scale_out()
        places = nodes_of(job)
        before = len(flow.rows["up"])
        until(lambda: len(flow.rows["up"]) > before + 100, "the stream goes on")
        job.stop(drain=True)
        job.wait(patience(60))
    nodes.remove(node)
    seen = {"node": node.node_id, "added": report.added, "parallelism": dict(report.parallelism), "places": places}
    return {**seen, "differences": flow.differences()}


def main(folder):
    warnings.simplefilter("ignore", ResourceWarning)
    with Nodes(1, CPUS) as nodes:
        seen = {
            "packed": packed(nodes),
            "without_cpus": without_cpus(folder),
            "spread": spread(nodes, folder),
            "star": star(nodes, folder),
            "beside_a_lost_node": beside_a_lost_node(nodes, folder),
            "with_resources": with_resources(nodes, folder),
        }
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
