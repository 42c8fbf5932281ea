"""A program, not a test: a topology of Stela on two nodes of this machine, then three; prints what `test_stela_on_ray.py` looks at as JSON.

A process can be connected to one cluster of Ray's only, and those of the other tests share one with a single node.
"""

from __future__ import annotations

import json
import sys
import warnings

from watching import until

import evenflow as ef
from evenflow.bench.stela.flow import TopologyFlow
from evenflow.bench.stela.load import Load
from evenflow.bench.stela.nodes import Nodes


def main(folder):
    warnings.simplefilter("ignore", ResourceWarning)
    flow = TopologyFlow.of("star", load=Load())
    config = ef.JobConfig(
        worker=ef.WorkerConfig(cpus=1.0, start_timeout="2m"),
        metrics=ef.MetricsConfig(window="500ms"),
        checkpoint=ef.CheckpointConfig(folder, interval="500ms"),
    )
    with Nodes(2, 8) as nodes:
        job = flow.flow.run(runtime="ray", config=config)
        until(lambda: all(flow.rows.values()), "rows come to every sink", 120.0)
        node = nodes.add(3)
        until(lambda: all(figures.rows_in_per_second > 0 for figures in job.metrics()), "all workers have measured")
        report = job.scale_out()
        places = {worker: place.node for worker, place in job.status().places.items()}
        before = len(flow.rows["up"])
        until(lambda: len(flow.rows["up"]) > before + 100, "the stream goes on")
        job.stop()
        job.wait("60s")
        nodes.remove(node)
    seen = {"node": node.node_id, "added": report.added, "parallelism": dict(report.parallelism), "places": places}
    sys.stdout.write(json.dumps({**seen, "differences": flow.differences()}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
