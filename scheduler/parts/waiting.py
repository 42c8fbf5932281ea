"""The part of a job that says what it waits for: it gathers the facts by which `load/standstill.py` decides."""

from __future__ import annotations

from collections.abc import Collection

from ...engine.plan.physical import Plan
from ...engine.protocol.ids import ChannelId, WorkerId
from ...engine.protocol.state_channels import is_state_channel, receiver_of
from ...engine.time.duration import seconds
from ..load.long_call import LONG_SECONDS
from ..load.standstill import Facts, PendingChange, waits
from ..load.wait import Wait
from ..load.window import WorkerWindow
from ..protocol.effects import JobState
from ..record.job_record import JobRecord
from .checkpointing import Checkpointing
from .node_scaling import NodeScaling

FRESH = 3.0
"""Seconds after its end, and window lengths in addition, for which a worker's newest window tells what it does now."""


class Waiting:
    """The causes for which one job stands still."""

    def __init__(self, job: JobRecord, checkpointing: Checkpointing, nodes: NodeScaling) -> None:
        self._job, self._checkpointing, self._nodes = job, checkpointing, nodes
        self._window = seconds(job.config.metrics.window)

    def waits(self) -> tuple[Wait, ...]:
        """Return the causes for which the job, or its results, stand still; none before it runs, or when it has ended."""
        job = self._job
        if job.state not in (JobState.RUNNING, JobState.STOPPING):
            return ()
        rowless = job.progress.rowless_seconds(job.now)
        still = rowless if rowless >= LONG_SECONDS + self._window else 0.0  # rows of the present window are not reported yet
        calls = {worker: call for worker, call in job.long_calls.items() if worker in job.workers and worker not in job.finished}
        facts = Facts(still, calls, held=job.quiet.held, nodes=self._nodes.waits())
        return waits(self._all_facts(facts) if still else facts)

    def _all_facts(self, known: Facts) -> Facts:
        job = self._job
        working = [worker for worker in job.workers if worker not in job.finished]
        windows = {worker: window for worker in working if (window := job.metrics.newest(worker)) is not None}
        fresh = {worker: window for worker, window in windows.items() if self._age(window) <= FRESH + 2 * window.length}
        receivers = _receivers(job.plan, {channel for window in fresh.values() for channel in window.blocked})
        stopped = job.in_step or job.state is JobState.STOPPING
        return Facts(
            known.still,
            known.calls,
            blocked={
                worker: tuple(dict.fromkeys(receivers[channel] for channel in window.blocked if channel in receivers))
                for worker, window in fresh.items()
                if window.blocked
            },
            silent={worker: known.still for worker in working if worker not in fresh and worker not in known.calls},
            idle={} if stopped else {w: window.backlog for w, window in fresh.items() if w in job.sources and _idle(window)},
            held=known.held,
            nodes=known.nodes,
            change=self._change(known.still),
            checkpoint=self._checkpointing.pending_save,
            commit=self._checkpointing.pending_commit,
        )

    def _age(self, window: WorkerWindow) -> float:
        return self._job.now - window.start - window.length

    def _change(self, still: float) -> PendingChange | None:
        """Return the change that has paused the stream, at the earliest since the last row."""
        job = self._job
        if not job.in_step:
            return None
        migration, rescaling = job.migrations.current, job.rescaling
        if rescaling is not None and rescaling.exclusive:
            begun, operator = rescaling.begun, rescaling.rescale.stage
        else:
            assert migration is not None
            begun, operator = migration.begun, migration.stage
        return PendingChange(operator, still if begun is None else min(still, job.now - begun))


def _receivers(plan: Plan, channels: Collection[ChannelId]) -> dict[ChannelId, WorkerId]:
    """Return the workers of the plan to which these channels lead."""
    if not channels:
        return {}
    numbers = {task.number: task.name for task in plan.tasks}
    of_state = {channel: receiver_of(channel) for channel in channels if is_state_channel(channel)}
    found = {channel.id: channel.receiver for channel in plan.channels if channel.id in channels}
    return found | {channel: numbers[number] for channel, number in of_state.items() if number in numbers}


def _idle(window: WorkerWindow) -> bool:
    return not window.rows_in and not window.blocked
