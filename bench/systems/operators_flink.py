"""The operators' tasks in Flink's SQL, by an interpreter that has apache-flink: a local cluster with two slots in its JVM."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..machine import CpuWatch
from ..operators import FLINK
from ..task import Answer, Task

SCRIPT = Path(__file__).with_name("operators_flink_job.py")


def run(task: Task) -> Iterator[Answer]:
    """One JVM for all iterations; the time of the query over one row, which is mostly starting, is taken off."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as answers, CpuWatch() as cpu:
        command = [os.environ[FLINK], str(SCRIPT), task.to_json(), answers.name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=3000)  # noqa: S603 -- the interpreter that the user named
        measured = json.load(answers)
    for seconds in measured["seconds"]:
        yield Answer(seconds - measured["empty"], task.rows, {}, {"starting": measured["empty"], "cpu_seconds": cpu.seconds})
