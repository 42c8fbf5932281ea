"""The workers of a job: where they run, what each did in its newest window, the progress of its splits, and the records it dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ..engine.errors import RequestError
from ..engine.functions.measures import Measured
from ..engine.protocol.ids import WorkerId
from ..scheduler.load.metrics import WorkerFigures
from ..scheduler.policies.nodes.placement import short
from ..scheduler.protocol.failures import Failure
from ..scheduler.protocol.view import JobView
from .policy_snapshots import PolicySnapshots


def node_of(view: JobView, worker: WorkerId) -> str | None:
    """Return the short name of a worker's node; None without nodes, or before it has a process."""
    place = None if view.cluster is None else view.cluster.places.get(worker)
    return None if place is None else short(place.node)


def nodes_of(view: JobView, workers: Iterable[WorkerId]) -> list[tuple[str, int]]:
    """Count these workers by node, the node with the most first."""
    found = (node_of(view, worker) for worker in workers)
    return Counter(node for node in found if node is not None).most_common()


def nodes_with_workers(view: JobView) -> list[dict[str, Any]] | None:
    """List every node of the cluster with the workers of the plan in its order, nodes with workers first; None without nodes."""
    if view.cluster is None:
        return None
    workers: dict[str, list[WorkerId]] = {}
    for worker in (worker for stage in view.stages for worker in stage.workers if worker in view.cluster.places):
        workers.setdefault(view.cluster.places[worker].node, []).append(worker)
    nodes = [
        {"name": short(node.name), "cpus": node.cpus, "free": round(node.free, 2), "workers": workers.get(node.name, [])}
        for node in view.cluster.nodes
    ]
    return sorted(nodes, key=lambda node: (-len(node["workers"]), node["name"]))


def workers_of(snapshots: PolicySnapshots, operator: str | None) -> dict[str, Any]:
    """Describe the workers of the stage `operator` as a JSON object. Raises RequestError if there is no such stage."""
    view = snapshots.view
    stages = {stage.name: stage for stage in view.stages}
    if operator not in stages:
        raise RequestError(f"the job has no operator `{operator}`; there are: {', '.join(stages)}")
    stage, figures = stages[operator], {one.worker: one for one in snapshots.figures()}
    marks = [one.watermark for one in figures.values() if one.watermark is not None]
    newest = max(marks, default=None)
    owned = [0] * len(stage.workers)
    if stage.table is not None:
        for worker in stage.table.groups.tolist():
            owned[worker] += 1
    workers = [
        {**_worker(figures[worker], newest, owned[index]), "node": node_of(view, worker)} for index, worker in enumerate(stage.workers)
    ]
    splits = [
        [one.worker, split.split, split.lag, None if split.newest is None else split.newest.timestamp(), split.idle]
        for one in figures.values()
        if one.operator == operator
        for split in one.splits
    ]
    dropped: list[dict[str, Any]] = [{"time": one.time, "worker": one.worker, **asdict(one.what)} for one in view.dropped_records]
    dropped += [_failed(failure) for failure in view.failures]
    dropped = [one for one in dropped if one["operator"] in stage.operators]
    measured = [_measured(worker, one) for worker in stage.workers for one in figures[worker].measured]
    listed = {"workers": workers, "splits": splits, "dropped": dropped, "measured": measured}
    return {"operators": list(stage.operators), "keyed": stage.table is not None, **listed}


def _measured(worker: WorkerId, one: Measured) -> dict[str, Any]:
    """Describe a metric of a user's function in one worker. A histogram has its `count` and `mean`."""
    count = sum(one.counts)
    value = one.value if one.kind != "histogram" else one.value / count if count else None
    return {"worker": worker, "operator": one.operator, "name": one.name, "kind": one.kind, "value": value, "count": count}


def _failed(failure: Failure) -> dict[str, Any]:
    """Describe a record for which the job failed or restarted, in the form of the dropped ones."""
    facts = {"time": failure.time, "worker": "", "operator": failure.operator, "kind": "failed"}
    return {**facts, "record": failure.record, "key": failure.key, "error": f"{failure.kind}: {failure.text}"}


def _worker(one: WorkerFigures, newest: datetime | None, groups: int) -> dict[str, Any]:
    lag = None if newest is None or one.watermark is None else round((newest - one.watermark).total_seconds(), 2)
    return {
        "name": one.worker,
        "rows": [one.rows_in, one.rows_out],
        "in": round(one.rows_in_per_second, 1),
        "out": round(one.rows_out_per_second, 1),
        "busy": round(one.useful_share, 4),
        "credit": round(one.backpressure, 4),
        "queued": one.queued_batches,
        "lag": lag,
        "groups": groups,
        "bytes": one.state_bytes,
        "late": one.late_records,
        "refused": one.skipped_records,
        "p99": None if one.latency_ms is None else round(one.latency_ms[1], 1),
    }
