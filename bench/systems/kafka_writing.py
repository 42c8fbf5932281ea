"""Generated rows into a topic, by evenflow on Ray with two workers per operator."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import evenflow as ef

from ..machine import CpuWatch
from ..task import Answer, Task

INTERVAL = "1s"
WAIT = "600s"


def run(task: Task) -> Iterator[Answer]:
    """`options`: `bootstrap`, `topic` and `guarantee`. The processor time has that of the process that commits, too."""
    given = task.options
    flow = ef.Dataflow("bench-kafka-writing")
    sink = ef.write_kafka(given["topic"], bootstrap=given["bootstrap"], key="key", guarantee=given["guarantee"])
    flow.read(ef.generate(total=task.rows)).write(sink)
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-checkpoints-") as folder:
        job = flow.run(config=ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(folder, interval=INTERVAL)))
        begun = job.status().running_seconds
        with CpuWatch(newcomers=True) as cpu:
            job.wait(WAIT)
        yield Answer(job.status().running_seconds - begun, task.rows, {}, {"cpu_seconds": cpu.seconds})
