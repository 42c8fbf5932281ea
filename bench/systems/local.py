"""evenflow in one thread of one process: the local runtime with one worker per operator."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import evenflow as ef

from ..machine import CpuWatch
from ..task import Answer, Task
from .evenflow import WAIT, flow_of, result_of


def run(task: Task) -> Iterator[Answer]:
    """The time is from when the worker runs until the job has ended."""
    for number in range(task.repeat):
        shutil.rmtree(task.output, ignore_errors=True)
        with CpuWatch() as cpu:
            job = flow_of(task, f"bench-local-{task.name}-{number}").run(runtime="local", config=ef.JobConfig(parallelism=1))
            job.wait(WAIT)
        yield Answer(job.status().running_seconds, task.rows, result_of(task), {"cpu_seconds": cpu.seconds})
