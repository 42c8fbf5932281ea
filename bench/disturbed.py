"""Jobs whose processes are killed all the time: how they are set up, and how to wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evenflow as ef

LOOK_SECONDS = 0.1
NEWS_SECONDS = 300.0
"""The time in which a job that has ended must say why."""


def disturbed_config(folder: Path, *, interval: str, **settings: Any) -> ef.JobConfig:
    """Checkpoints in `folder` every `interval`, as many restarts as it takes, and time to start on a busy machine; `settings` besides."""
    return ef.JobConfig(
        checkpoint=ef.CheckpointConfig(str(folder / "checkpoints"), interval=interval),
        restart=ef.RestartConfig("fixed", delay="10ms", most=1_000_000),
        worker=ef.WorkerConfig(heartbeat_timeout="8s", start_timeout="3m"),
        **settings,
    )


def wait_until(job: ef.Job, condition: Callable[[], bool], seconds: float, tend: Callable[[], None] = lambda: None) -> None:
    """Until the condition holds, `seconds` have passed, or the job has ended, which is an error; `tend` is called all the time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        tend()
        if has_ended(job):
            job.wait(NEWS_SECONDS)
            raise ef.JobError(f"job `{job.name}` has ended before its stream did")
        time.sleep(LOOK_SECONDS)


def has_ended(job: ef.Job) -> bool:
    """A job whose coordinator sleeps, or is being restarted, has not."""
    try:
        return job.status().state.final
    except ef.JobError:
        return False
