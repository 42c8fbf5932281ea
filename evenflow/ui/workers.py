"""An operator's workers one by one: what each did in its newest window, how far its splits are, and records that were left out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..engine.errors import RequestError
from ..recording.seen import Seen
from ..scheduler.load.metrics import WorkerFigures
from ..scheduler.protocol.failures import Failure
from .placement import node_of


def workers_of(seen: Seen, operator: str | None) -> dict[str, Any]:
    """Those of the stage `operator`. Raises RequestError if there is no such stage."""
    stages = {stage.name: stage for stage in seen.view.stages}
    if operator not in stages:
        raise RequestError(f"the job has no operator `{operator}`; there are: {', '.join(stages)}")
    stage, figures = stages[operator], {one.worker: one for one in seen.figures()}
    marks = [one.watermark for one in figures.values() if one.watermark is not None]
    newest = max(marks, default=None)
    owned = [0] * len(stage.workers)
    if stage.table is not None:
        for worker in stage.table.groups.tolist():
            owned[worker] += 1
    told = [
        {**_worker(figures[worker], newest, owned[index]), "node": node_of(seen.view, worker)} for index, worker in enumerate(stage.workers)
    ]
    splits = [
        [one.worker, split.split, split.lag, None if split.newest is None else split.newest / 1e6, split.idle]
        for one in figures.values()
        if one.operator == operator
        for split in one.splits
    ]
    left_out: list[dict[str, Any]] = [{"time": one.time, "worker": one.worker, **asdict(one.what)} for one in seen.view.left_out]
    left_out += [_failed(failure) for failure in seen.view.failures]
    left_out = [one for one in left_out if one["operator"] in stage.operators]
    return {"operators": list(stage.operators), "keyed": stage.table is not None, "workers": told, "splits": splits, "leftOut": left_out}


def _failed(failure: Failure) -> dict[str, Any]:
    """A record that the job failed or went back for, told as those that were left out."""
    facts = {"time": failure.time, "worker": "", "operator": failure.operator, "kind": "failed"}
    return {**facts, "record": failure.record, "key": failure.key, "error": f"{failure.kind}: {failure.text}"}


def _worker(one: WorkerFigures, newest: int | None, groups: int) -> dict[str, Any]:
    lag = None if newest is None or one.watermark is None else round((newest - one.watermark) / 1e6, 2)
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
