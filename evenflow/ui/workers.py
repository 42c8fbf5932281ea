"""An operator's workers one by one: what each did in its newest window, and how far its splits are."""

from __future__ import annotations

from typing import Any

from ..engine.errors import RequestError
from ..recording.seen import Seen
from ..scheduler.load.metrics import WorkerFigures


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
    told = [_worker(figures[worker], newest, owned[index]) for index, worker in enumerate(stage.workers)]
    splits = [
        [one.worker, split.split, split.lag, None if split.newest is None else split.newest / 1e6, split.idle]
        for one in figures.values()
        if one.operator == operator
        for split in one.splits
    ]
    return {"operators": list(stage.operators), "keyed": stage.table is not None, "workers": told, "splits": splits}


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
