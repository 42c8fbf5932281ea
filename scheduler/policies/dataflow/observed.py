"""The snapshot of a running job that scaling policies decide by, made from its workers' measurements.

Invariant: a snapshot has one operator per stage, in the plan's order, with one instance per worker; operators that are chained in
the same workers share their figures, so they are one operator here, with the stage's name.

Four figures are estimates, since they are not measured:

- The demand of a source. If it knows its backlog, the demand is its reading rate plus the backlog's growth. If it states neither
  a `rate` nor a backlog, it is each worker's reading rate, divided by the share of time in which the worker did not wait for
  credit, and at most `MOST_HELD_BACK` times the reading rate. A source that reads without a pace counts as one that offers all
  that it can read.
- The share of an edge where an operator has several outputs: the receiver's input, in equal parts where several feed it.
- True rates of a worker that waits for input: without the fixed costs of batches (`batch_costs.py`), to the extent that its CPU
  was its own. If it were busy all the time, it would get full batches.
- An operator's latency: waiting records divided by processed records (Little's law). For an operator without outputs: the latency
  of its marks, less the latency of the path before it.

>>> import evenflow as ef
>>> from evenflow.scheduler.policies.dataflow.scaled_stage import scaled_stages
>>> flow = ef.Dataflow("f")
>>> _ = flow.read(ef.generate(rate=900)).key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
>>> source = WorkerWindow("generate-0", 0.0, 1.0, rows_in=600, rows_out=600, useful=0.5, wait_credit=0.5)
>>> count = WorkerWindow("count-0", 0.0, 1.0, rows_in=600, useful=1.0)
>>> snapshot = observed(scaled_stages(flow.plan()), {"generate-0": [source], "count-0": [count]})
>>> [(one.name, one.source_rate, one.true_processing_rate) for one in snapshot.operators]
[('generate', 900, 1200.0), ('count', None, 600.0)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....engine.protocol.ids import WorkerId
from ...load.batch_costs import MOST, BatchCosts
from ...load.window import WorkerWindow
from .figures import InstanceFigures, OperatorFigures
from .scaled_stage import ScaledStage
from .settings import DEFAULTS, PolicySettings
from .snapshot import DataflowSnapshot, Edge

MOST_HELD_BACK = 20.0
"""The most by which a source is assumed to be held back: one that waits all the time doesn't show how much it would read."""

IDLE = 0.2
"""The part of its time for which a worker waits for input while its batches are as small as they come; one that never waits gets
full ones.
"""

STARVED = 0.1
"""The share of a window that its worker may wait for a CPU while its batches show the cost of a batch. Beyond that, the times of
batches reflect the machine's other load, and a line through them shows costs that don't exist.
"""

SHORTEST = 1e-6
"""The shortest measurement that counts, in seconds."""


def observed(
    stages: Sequence[ScaledStage],
    windows: Mapping[WorkerId, Sequence[WorkerWindow]],
    settings: PolicySettings = DEFAULTS,
    nodes: Mapping[WorkerId, str] | None = None,
) -> DataflowSnapshot:
    """Return the snapshot of `stages`, which are in topological order.

    `windows`: the windows to use, by worker; a worker without any has no rates. `nodes`: each worker's node, if there are nodes.
    The bounds of `settings` become those of each operator that has none of its own; a source that can't be reassigned keeps its
    workers.
    """
    workers = {s.name: [_joined(windows.get(worker, ())) for worker in s.workers] for s in stages}
    edges = _edges(stages, {name: sum(one.rows_in for one in several) for name, several in workers.items()})
    operators: dict[str, OperatorFigures] = {}
    so_far: dict[str, float] = {}
    for stage in stages:
        feeders = [edge.source for edge in edges if edge.target == stage.name]
        reads = [windows.get(worker, ()) for worker in stage.workers]
        figures = replace(
            _operator(stage, workers[stage.name], _offered(stage, reads, workers[stage.name]), settings), backlog_growth=_growth(reads)
        )
        before = max((so_far[name] for name in feeders), default=0.0)
        where = tuple(nodes[worker] for worker in stage.workers) if nodes else ()
        operators[stage.name] = replace(figures, latency_ms=_latency_ms(figures, workers[stage.name], before), nodes=where)
        so_far[stage.name] = before + (operators[stage.name].latency_ms or 0.0)
    return DataflowSnapshot(tuple(operators.values()), edges, replace(settings, min_parallelism=1, max_parallelism=None))


def _joined(windows: Sequence[WorkerWindow]) -> WorkerWindow:
    """Merge windows of a worker, with the mean of the waiting records; without windows the result has no length."""
    if not windows:
        return WorkerWindow(WorkerId(""), 0.0, 0.0)
    sums: dict[str, Any] = {
        name: sum(getattr(window, name) for window in windows)
        for name in ("length", "rows_in", "rows_out", "useful", "wait_credit", "starved", "keyed_records")
    }
    costs = sum((window.costs for window in windows if window.starved <= STARVED * window.length), BatchCosts())
    hot: dict[Any, int] = {}
    for key, count in (item for window in windows for item in window.hot_keys):
        hot[key] = hot.get(key, 0) + count
    latencies = tuple(latency for window in windows for latency in window.latencies)
    queued = round(sum(window.queued_rows for window in windows) / len(windows))
    backlog = windows[-1].backlog
    return WorkerWindow(
        windows[0].worker, windows[0].start, queued_rows=queued, backlog=backlog, hot_keys=tuple(hot.items()), latencies=latencies,
        costs=costs, **sums,
    )  # fmt: skip


def _operator(stage: ScaledStage, workers: list[WorkerWindow], source_rate: float | None, settings: PolicySettings) -> OperatorFigures:
    least, most = _bounds(stage, settings)
    fixed = sum((worker.costs for worker in workers), BatchCosts()).fixed
    return OperatorFigures.summed(
        stage.name,
        [_instance(worker, fixed) for worker in workers],
        source_rate=source_rate,
        kind=stage.kind,
        chain=stage.name if stage.chained else None,
        hottest_key_share=_hottest_share(workers),
        keyed=stage.key_groups is not None,
        key_groups=stage.key_groups,
        min_parallelism=least,
        max_parallelism=most,
    )


def _bounds(stage: ScaledStage, settings: PolicySettings) -> tuple[int, int | None]:
    """Return the fewest and the most workers: the operator's own bounds, else those of the settings; its present number if that
    is fixed.
    """
    if stage.fixed:
        return stage.parallelism, stage.parallelism
    return stage.least or settings.min_parallelism, stage.most or settings.max_parallelism


def _instance(worker: WorkerWindow, fixed: float) -> InstanceFigures:
    """Return the figures of a worker. `fixed`: seconds that a batch costs, whatever its rows."""
    if worker.length < SHORTEST:
        return InstanceFigures()
    idle = max(0.0, 1.0 - (worker.useful + worker.wait_credit + worker.starved) / worker.length)
    useful = worker.useful - min(fixed * worker.costs.batches, MOST * worker.useful) * min(1.0, idle / IDLE)
    worked = useful >= SHORTEST and worker.rows_in > 0
    return InstanceFigures(
        true_processing_rate=worker.rows_in / useful if worked else None,
        true_output_rate=worker.rows_out / useful if worked else None,
        observed_processing_rate=worker.rows_in / worker.length,
        observed_output_rate=worker.rows_out / worker.length,
        queue_records=worker.queued_rows if worker.backlog is None else worker.backlog,
        backpressure=_held_back(worker),
        starvation=min(worker.starved / worker.length, 1.0),
    )


def _held_back(worker: WorkerWindow) -> float:
    """Return the share of time that a worker waited for credit."""
    return min(worker.wait_credit / worker.length, 1.0) if worker.length >= SHORTEST else 0.0


def _offered(stage: ScaledStage, windows: Sequence[Sequence[WorkerWindow]], workers: list[WorkerWindow]) -> float | None:
    """Return the records per second that a source is offered, None for another operator; `workers` are the `windows` of each,
    merged.
    """
    if not stage.is_source or stage.rate is not None:
        return stage.rate
    came = [_came(several) for several in windows]
    known = [rate for rate in came if rate is not None]
    if known and len(known) == len(came):
        return sum(known)
    return sum(w.rows_in / w.length / max(1.0 - _held_back(w), 1.0 / MOST_HELD_BACK) for w in workers if w.length >= SHORTEST)


def _came(windows: Sequence[WorkerWindow]) -> float | None:
    """Return the rate (records/s) of arrivals at a source's worker, read or not, from the end of its first window to that of its
    last.
    """
    growth = _grown(windows)
    if growth is None:
        return None
    return max(0.0, sum(window.rows_in for window in windows[1:]) / sum(window.length for window in windows[1:]) + growth)


def _growth(windows: Sequence[Sequence[WorkerWindow]]) -> float | None:
    """Return the growth (records/s) of the unread input of a source's workers, None for another operator; `windows` are those of
    each.
    """
    grown = [_grown(several) for several in windows]
    known = [rate for rate in grown if rate is not None]
    return sum(known) if known and len(known) == len(grown) else None


def _grown(windows: Sequence[WorkerWindow]) -> float | None:
    if len(windows) < 2:
        return None
    first, last = windows[0].backlog, windows[-1].backlog
    length = sum(window.length for window in windows[1:])
    return None if first is None or last is None or length < SHORTEST else (last - first) / length


def _hottest_share(workers: list[WorkerWindow]) -> float | None:
    records = sum(worker.keyed_records for worker in workers)
    hot: dict[Any, int] = {}
    for key, count in (item for worker in workers for item in worker.hot_keys):
        hot[key] = hot.get(key, 0) + count
    return min(max(hot.values()) / records, 1.0) if hot and records else None


def _edges(stages: Sequence[ScaledStage], taken: Mapping[str, int]) -> tuple[Edge, ...]:
    """Return the edges with their shares. `taken`: the records that each stage took in."""
    targets = {stage.name: stage.outputs for stage in stages}
    feeders = {name: sum(name in others for others in targets.values()) for name in targets}
    edges = []
    for name, others in targets.items():
        parts = {other: taken[other] / feeders[other] for other in others}
        total = sum(parts.values())
        edges += [Edge(name, other, parts[other] / total if total else 1.0 / len(others)) for other in others]
    return tuple(edges)


def _latency_ms(figures: OperatorFigures, workers: list[WorkerWindow], before: float) -> float | None:
    """Return an operator's part of the latency. `before`: milliseconds of the slowest path to it. Unread records wait outside the
    dataflow.
    """
    marks = [latency for worker in workers for latency in worker.latencies]
    rate = figures.observed_processing_rate
    waiting = sum(worker.queued_rows for worker in workers) / rate * 1000.0 if rate else None
    if not marks:
        return waiting
    return max(sum(marks) / len(marks) - before, waiting or 0.0)
