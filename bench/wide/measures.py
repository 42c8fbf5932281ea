"""Processor times of the parts of one wide job: its coordinator, its changes, its upstream workers, and its views."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import TypeVar

import numpy as np
import pyarrow as pa
from prometheus_client import CollectorRegistry, generate_latest

from ...actors.job.prometheus import JobCollector
from ...balancer.base import Limits
from ...balancer.policies import named
from ...engine.batch import Batch
from ...engine.protocol.effects import Sent
from ...engine.protocol.ids import ChannelId
from ...engine.protocol.routing import RoutingTable, even_table
from ...engine.task.hash_exchange import HashExchange
from ...scheduler.protocol.requests import ChangeRequest, Request, Scale, ShowSnapshot, ShowStatus, ShowView, TakeCheckpoint
from ...terminal.console import as_text
from ...terminal.status import status_table
from ...terminal.top import frame
from ...views.history import History
from ..migration.loop import first_snapshot
from .crowd import KEY_GROUPS, KEYED, TICKS, Crowd, wide_config, wide_plan
from .loads import ZIPF, Loads

BATCH_ROWS, BATCHES = 32_768, 16

A = TypeVar("A")
Figures = Iterator[tuple[str, str, float]]
"""Names of figures, their units, and values."""


def planned(workers: int, sources: int) -> Figures:
    """Measure the plan of a job, which its program makes and pickles once."""
    packed, spent = timed(lambda: pickle.dumps(wide_plan(sources, wide_config(workers))))
    yield "plan", "ms", spent
    yield "bytes of a plan", "bytes", len(packed)


def coordinated(crowd: Crowd, loads: Loads, seconds: int) -> Figures:
    """Measure the coordinator while every worker reports a window a second: the median of some seconds."""
    spent, received = [], []
    for _ in range(seconds):
        before = crowd.seconds, crowd.received
        live_second(crowd, loads)
        spent.append((crowd.seconds - before[0]) * 1000)
        received.append(crowd.received - before[1])
    yield "reports", "ms/s", median(spent)
    yield "bytes of a report", "bytes", median(received) / (len(crowd.workers) + len(crowd.sources))


def live_second(crowd: Crowd, loads: Loads) -> None:
    """Let a second pass, at whose end all workers report."""
    windows = list(loads.windows(crowd.workers, crowd.sources, crowd.core.migrations.tables[KEYED], crowd.now))
    for _ in range(TICKS):
        crowd.tick()
    for window in windows:
        crowd.report(window.worker, window)
    crowd.run()


def balanced(workers: int) -> Figures:
    """Measure the plan by `hotspot` of an uneven load, with hot keys."""
    uneven, policy = first_snapshot(ZIPF, workers, key_groups=KEY_GROUPS), named("hotspot")
    yield "balance plan", "ms", median(timed(lambda: policy.plan(uneven, Limits()))[1] for _ in range(3))


def changed(crowd: Crowd, request: ChangeRequest, done: Callable[[], bool]) -> float:
    """Return the milliseconds of the coordinator for a change, with all answers of the workers."""
    before = crowd.seconds
    crowd.ask(request)
    crowd.until(done)
    return (crowd.seconds - before) * 1000


def changes(crowd: Crowd) -> Figures:
    """Measure a snapshot of the load, a checkpoint, and a migration in one step that moves the groups of every worker to its neighbour."""
    core = crowd.core
    yield "snapshot", "ms", timed(lambda: crowd.ask(ShowSnapshot(KEYED)))[1]
    completed = core.checkpoints.completed
    yield "checkpoint", "ms", changed(crowd, TakeCheckpoint(), lambda: core.checkpoints.completed > completed)
    begun, stage, table = crowd.seconds, core.plan.stage_of(KEYED), core.migrations.tables[KEYED]
    target = RoutingTable(((table.groups + 1) % len(crowd.workers)).astype(np.uint16))
    crowd.do(core.reconfiguration.move, stage, "sudden", target, "by hand")
    crowd.until(lambda: core.migrations.current is None)
    yield "migration", "ms", (crowd.seconds - begun) * 1000


def rescaled(crowd: Crowd) -> Figures:
    """Measure the doubling of the workers: their start, their channels, and the moves of half of the keys to them."""
    after = 2 * len(crowd.workers)
    request = Scale(KEYED, after, "sudden")
    yield "rescale", "ms", changed(crowd, request, lambda: len(crowd.workers) == after and not crowd.core.busy)


def routed(workers: int) -> Figures:
    """Measure the exchange of an upstream worker: the time of a batch, with its part of a flush of many batches."""
    random, out = np.random.default_rng(0), list[Sent]()
    exchange = HashExchange([ChannelId(n) for n in range(workers)], BATCH_ROWS, KEYED, ("key",), even_table(KEY_GROUPS, workers))
    times = np.zeros(BATCH_ROWS, np.int64)
    batches = [
        Batch(pa.record_batch({"key": random.integers(0, 1_000_000, BATCH_ROWS), "value": random.random(BATCH_ROWS)}), times)
        for _ in range(BATCHES)
    ]

    def route() -> None:
        for batch in batches:
            exchange.push(batch, 0.0, out)
        exchange.flush(out)
        out.clear()

    route()
    yield "routing of a batch", "ms", median(timed(route)[1] for _ in range(3)) / BATCHES


class Asking:
    """Answers for a crowd's coordinator, as its interpreter does."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd

    def ask(self, request: Request[A]) -> A:
        return self._crowd.ask(request)


def viewed(crowd: Crowd, loads: Loads, seconds: int) -> Figures:
    """Measure the views of the pages, Prometheus and the terminal, each a median over some seconds."""
    history, registry, collector = History("wide"), CollectorRegistry(), JobCollector("wide", Asking(crowd))
    registry.register(collector)
    history.add(crowd.ask(ShowView(history.since)))
    found: dict[tuple[str, str], list[float]] = {}

    def note(name: str, spent: float, size: int | None = None) -> None:
        found.setdefault((name, "ms"), []).append(spent)
        if size is not None:
            found.setdefault((f"bytes of a {name}", "bytes"), []).append(size)

    for _ in range(seconds):
        live_second(crowd, loads)
        packed, spent = timed(lambda: pickle.dumps(crowd.ask(ShowView(history.since))))
        note("view", spent, len(packed))
        message, spent = timed(lambda: json.dumps(history.add(pickle.loads(packed))))  # noqa: B023, S301 -- called at once; our own view
        note("page message", spent, len(message))
        page, spent = timed(lambda: generate_latest(registry))
        note("page of metrics", spent, len(page))
        note("status", timed(lambda: as_text(status_table(crowd.ask(ShowStatus()))))[1])
        note("top", timed(lambda: as_text(frame(history)))[1])
    for (name, unit), values in found.items():
        yield name, unit, median(values)


def timed(call: Callable[[], A]) -> tuple[A, float]:
    """Return what `call` returns, and the milliseconds of processor time that it took."""
    begun = time.thread_time()
    answer = call()
    return answer, (time.thread_time() - begun) * 1000
