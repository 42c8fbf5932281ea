"""The slices of work of each worker while keys move, on virtual processors.

>>> longest_gap([Slice(0.0, "batch", 1.0, 2), Slice(1.0, "install", 2.0, 2), Slice(3.0, "marker", 1.0, 2), Slice(4.0, "batch", 9.0, 1)])
3.0
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import evenflow as ef

from ...balancer.strategies import plan_steps
from ...engine.batch import Batch
from ...engine.protocol.handover_step import Arrived, HandoverStep
from ...engine.protocol.ids import StepVersion, WorkerId, WorkerNumber
from ...engine.protocol.routing import RoutingTable
from ...engine.sink import Sink, SinkWriter
from ...scheduler.load.load_snapshot import STEP_BYTES
from ...scheduler.protocol.messages import Announced, Report
from ...scheduler.record.migrations import Migrations
from ..harness.record import Case
from .virtual_run import DueSource, Slice, VirtualRun, settle_memory

STEADY, AFTER = 1.0, 0.5
"""Virtual seconds before the move and after it."""

LONGEST = 30.0
"""Virtual seconds after which a move that doesn't end is given up."""

SHOWN = 0.001


@dataclass(frozen=True, slots=True)
class Sliced:
    """The measurements of one move. Latencies in ms: p99 before, p99 and longest while it moves; `seconds` that it took.

    `slices`: those during the move, by worker.
    """

    steady: float
    p99: float
    longest: float
    seconds: float
    steps: int
    slices: dict[WorkerId, list[Slice]]

    @property
    def gap(self) -> float:
        """The longest time (ms) in which a worker with keys took no batch."""
        return max((longest_gap(slices) for slices in self.slices.values()), default=0.0) * 1e3

    def of_kind(self, kind: str) -> tuple[int, float, float]:
        """Return the number of slices of a kind, their total and the longest, in ms."""
        found = [piece.seconds * 1e3 for slices in self.slices.values() for piece in slices if piece.kind == kind]
        return len(found), sum(found), max(found, default=0.0)

    @property
    def kinds(self) -> list[str]:
        """The kinds of slices, the longest first."""
        return sorted({piece.kind for slices in self.slices.values() for piece in slices}, key=lambda kind: -self.of_kind(kind)[2])


def longest_gap(slices: Iterable[Slice]) -> float:
    """Return the longest time between two batches in which a worker did other work without a pause."""
    longest = gap = 0.0
    end = -1.0
    for piece in slices:
        gap = 0.0 if piece.kind == "batch" else gap * (piece.at - end < 1e-3) + piece.seconds
        end = piece.at + piece.seconds
        longest = max(longest, gap)
    return longest


class _Latencies(Sink):
    guarantee = "none (it only measures)"

    def __init__(self, run: list[VirtualRun]) -> None:
        self.name, self.run = "latencies", run
        self.parts: list[np.ndarray[Any, Any]] = []

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return _LatencyWriter(self)


class _LatencyWriter(SinkWriter):
    def __init__(self, sink: _Latencies) -> None:
        self._sink = sink

    def write(self, batch: Batch) -> None:
        created = batch.rows.column("created").to_numpy()
        measured = created[created > 0]
        self._sink.parts.append(np.stack([measured / 1e9, self._sink.run[0].now() * 1e3 - measured / 1e6]))

    def prepare(self, checkpoint: int) -> list[Any]:
        return []


def measure_slices(
    strategy: str,
    flow_of: Callable[[Any], Any],
    keys: int,
    rate: float,
    key_groups: int,
    moved: Sequence[int],
    step_bytes: int = STEP_BYTES,
) -> Sliced:
    """Move key groups of worker 0 to worker 1. `flow_of(stream)` adds the keyed operator to a stream with `key` and `created`."""
    holder: list[VirtualRun] = []
    sink, flow = _Latencies(holder), ef.Dataflow("slices")
    source = DueSource(keys, rate, holder)
    flow_of(flow.read(source).key_by("key")).named("keyed").write(sink)
    plan = flow.plan(config=ef.JobConfig(parallelism=2, key_groups=key_groups))
    holder.append(run := VirtualRun(plan))
    run.open()
    members = [name for name, worker in run.workers.items() if worker.interpreter.task.handovers is not None]
    while sum(run.workers[name].interpreter.task.rows_in for name in members) < keys:
        run.run(run.at + 0.05)
    settle_memory()
    source.begun = run.at
    run.run(run.at + STEADY)
    begun = run.at
    table = plan.tables["keyed"]
    target = RoutingTable(np.where(np.isin(np.arange(key_groups), moved), np.uint16(1), table.groups))
    size = max(run.workers[name].interpreter.task.chain.state_bytes for name in members) / (key_groups / len(members))
    steps = [
        HandoverStep(StepVersion(0), step.moves, step.lazy, step.pause)
        for step in plan_steps(strategy, table, target, max(1, int(step_bytes / size)))
    ]
    numbers = {task.name: task.number for task in plan.tasks if task.name in members}
    _migrate(run, dict(plan.tables), strategy, steps, frozenset(run.workers) - frozenset(members), numbers)
    ended = run.at
    run.run(ended + AFTER)
    gc.unfreeze()
    latencies = np.concatenate(sink.parts, axis=1)
    during = latencies[1][(latencies[0] >= begun) & (latencies[0] <= ended)]
    before = latencies[1][(latencies[0] >= begun - STEADY / 2) & (latencies[0] < begun - 0.02)]
    slices = {name: [piece for piece in run.workers[name].slices if begun <= piece.at <= ended] for name in members}
    return Sliced(
        float(np.quantile(before, 0.99)), float(np.quantile(during, 0.99)), float(during.max()), ended - begun, len(steps), slices
    )


def _migrate(
    run: VirtualRun, tables: dict[str, RoutingTable], strategy: str, steps: list[HandoverStep], feeders: frozenset[WorkerId],
    members: dict[WorkerId, WorkerNumber],
) -> None:  # fmt: skip
    migrations = Migrations(tables)
    migrations.add("keyed", strategy, "to measure", steps, feeders, members, None)

    def advance() -> bool:
        while migrations.current is not None:
            commands = migrations.advance(finished=frozenset(), running=True, free=True, now=run.at)
            if commands is None:
                break
            run.tell(commands)
        return migrations.current is None

    def note(worker: WorkerId, report: Report) -> bool:
        if isinstance(report, Announced | Arrived):
            migrations.note(worker, report)
        return advance()

    if not advance():
        run.run(run.at + LONGEST, note)


def line_of(strategy: str, found: Sliced) -> str:
    """Describe the slices of a move in one line."""
    ratio = f"p99 {found.steady:.1f} ms, {found.p99:.1f} while it moves, longest {found.longest:.1f}"
    kinds = ", ".join(f"{kind} {found.of_kind(kind)[2]:.1f}" for kind in found.kinds[:4])
    return f"{strategy} on virtual processors: {ratio}; at most {found.gap:.1f} ms without a batch; longest slices in ms: {kinds}"


def cases_of(strategy: str, found: Sliced) -> list[Case]:
    """Return the measurements of a move; the details hold each worker's slices of at least `SHOWN` seconds: a timeline."""
    timeline = {
        worker: [
            (round(piece.at, 4), piece.kind, round(piece.seconds * 1e3, 2), piece.waiting) for piece in slices if piece.seconds >= SHOWN
        ]
        for worker, slices in found.slices.items()
    }
    figures: dict[str, tuple[float, dict[str, Any]]] = {
        "longest without a batch": (found.gap, {"timeline": timeline}),
        "p99 while it moves": (found.p99, {}),
        "steady p99": (found.steady, {}),
        "largest": (found.longest, {}),
        **{
            f"longest {kind}": (found.of_kind(kind)[2], {"slices": found.of_kind(kind)[0], "all_ms": found.of_kind(kind)[1]})
            for kind in found.kinds
        },
    }
    return [Case(f"{strategy}/virtual/{name}", "ms", "lower", (value,), (details,)) for name, (value, details) in figures.items()]
