"""Measures one change of the code of a running job: live, or by a stop with a savepoint and a start."""

from __future__ import annotations

import time
from pathlib import Path

import evenflow as ef

from ..harness import machine
from ..harness.conditions import scratch
from ..harness.jobs import drain, rows_read, until
from ..recovery.output_log import KEYS
from .change import Change, change_of, joined
from .stream import NEW, OPERATOR, Touch, VersionTrace, check, counting, touch, touch_anew
from .timeline import WATCH, WorkersWatch, phases

WORKERS, KEY_GROUPS = 2, 1024
CANARY = 0.05
STEADY, WATCHED, AFTER, FULL_SPEED = 8.0, 5.0, 4.0, 8.0
"""Seconds: at the rate before the change, of the watch, calm ones after the change, and at full speed to measure the capacity."""

SAVE_FIRST = 2.0
"""Seconds before the change at which a checkpoint takes the trace out of the workers, so that the next one doesn't carry it."""

WAIT = 180.0
ADDED = 1 + WORKERS
"""The processes that an upgrade starts: one additional worker, and one in the place of each other."""


def capacity() -> float:
    """Measure the rows a second at full speed."""
    job, _ = start("bench-upgrade-largest", touch, None, ef.JobConfig(parallelism=WORKERS, key_groups=KEY_GROUPS))
    time.sleep(2.0)
    begun, before = time.monotonic(), rows_read(job, OPERATOR)
    time.sleep(FULL_SPEED)
    rate = (rows_read(job, OPERATOR) - before) / (time.monotonic() - begun)
    job.cancel()
    job.wait(WAIT)
    return rate


def live(rate: int, number: int, spares: int) -> Change:
    """Upgrade a running job; `spares` processes have been started ahead."""
    busy, name = machine.busy_share(), f"bench-upgrade-live-{spares}-{number}"
    with scratch("upgrade") as folder:
        job, sink = start(name, touch, rate, _config(folder, spares=spares))
        until(lambda: job.status().spares >= spares, f"{spares} spare processes have started", WAIT, every=0.2)
        _settle(job)
        with WorkersWatch(job, OPERATOR) as watch:
            report = job.upgrade(counting(name, touch_anew, rate)[0], canary=CANARY, watch=WATCHED, timeout=WAIT)
        assert report is not None
        assert report.began_at is not None
        assert report.seconds is not None
        begun, ended = report.began_at, report.began_at + report.seconds
        time.sleep(max(0.0, ended + 2 * AFTER - time.time()))
        timeline = phases(report, job.checkpoints(), job.migrations(), watch.joined, WORKERS)
        drain(job, WAIT)
    trace = sink.trace()
    return change_of(trace, begun, ended, STEADY / 2, AFTER, timeline, WATCH, check(trace, rate), busy)


def restarted(rate: int, number: int, keep: str) -> Change:
    """Stop a job with a savepoint, and start the new code from it. `keep`: how long this process keeps the workers' processes for it."""
    busy, name = machine.busy_share(), f"bench-upgrade-restart-{number}"
    with scratch("upgrade") as folder:
        job, before = start(name, touch, rate, _config(folder, keep=keep))
        _settle(job)
        begun = time.time()
        job.stop(savepoint=folder / "saved", timeout=WAIT)
        flow, after = counting(name, touch_anew, rate)
        job = flow.run(config=_config(folder, keep=keep), from_savepoint=folder / "saved")
        until(lambda: rows_read(job, OPERATOR) > 0, "the new job reads rows", WAIT)
        took = time.time() - begun
        time.sleep(2 * took + 2 * AFTER)
        drain(job, WAIT)
    trace = joined(before.trace(), after.trace())
    new = trace[trace["key"] == NEW]
    ended = float((new["created"] + new["latency"] * 1e6).min()) / 1e9
    return change_of(trace, begun, ended, STEADY / 2, AFTER, [], WATCH, check(trace, rate), busy)


def start(name: str, code: Touch, rate: int | None, config: ef.JobConfig) -> tuple[ef.Job, VersionTrace]:
    """Start the job, and wait until it has all keys."""
    flow, sink = counting(name, code, rate)
    job = flow.run(config=config)
    until(lambda: rows_read(job, OPERATOR) >= KEYS, f"the job has {KEYS:,} keys", WAIT, every=0.2)
    return job, sink


def _config(folder: Path, spares: int = 0, keep: str = "60s") -> ef.JobConfig:
    checkpoint = ef.CheckpointConfig(str(folder / "checkpoints"), interval=None)
    worker = ef.WorkerConfig(warm_spares=spares, keep=keep)
    return ef.JobConfig(parallelism=WORKERS, key_groups=KEY_GROUPS, checkpoint=checkpoint, worker=worker)


def _settle(job: ef.Job) -> None:
    """Wait for the steady phase before the change."""
    time.sleep(STEADY - SAVE_FIRST)
    job.checkpoint(WAIT)
    time.sleep(SAVE_FIRST)
