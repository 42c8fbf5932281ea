"""A task in real time: the interpreter with the ports that Ray and the local runtime share."""

from __future__ import annotations

from functools import partial

from ...engine.plan.task_spec import TaskSpec
from ...engine.time.duration import seconds
from ...scheduler.configs.run import RunConfig
from ...scheduler.record.restoring.restored_task import RestoredTask
from ...state.store import CheckpointStore
from ..clocks import SystemClock
from .background_work import BackgroundThreads
from .meter import Meter
from .pacing import Pacing
from .state_writer import StateWriter
from .task_interpreter import TaskInterpreter
from .task_ports import Channels, Reports, TaskPorts


def real_task(
    spec: TaskSpec, channels: Channels, reports: Reports, config: RunConfig, restored: RestoredTask | None = None
) -> TaskInterpreter:
    """Create the interpreter of a task and its ports. `restored`: the checkpoint that the task starts from, None to start empty."""
    ports = TaskPorts(
        channels,
        SystemClock(),
        reports,
        Pacing(spec.settings.linger, seconds(config.metrics.latency_interval)),
        partial(Meter, length=seconds(config.metrics.window), samples=config.metrics.samples),
        StateWriter(CheckpointStore(config.store_url), spec.name) if config.store_url is not None else None,
        CheckpointStore(restored.url) if restored is not None else None,
        BackgroundThreads(spec.name) if any(chained.operator.has_background_work for chained in spec.chain) else None,
    )
    return TaskInterpreter(spec, ports, restored)
