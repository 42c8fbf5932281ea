"""A running count of a topic's records per key in Quix Streams, by an interpreter that has it, in one process.

The time is from the first record to the last, the processor time that of the process meanwhile.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ..kafka.topics import TAKES_ALL
from ..task import Answer, Task
from .kafka_bytewax import answer_of

QUIX = "EVENFLOW_QUIX_PYTHON"
"""The environment variable that names the interpreter."""

SCRIPT = Path(__file__).with_name("kafka_quix_job.py")
WAIT = 900.0


def run(task: Task) -> Iterator[Answer]:
    """`options`: `bootstrap` and `topic`."""
    for number in range(task.repeat):
        notes = Path(task.output)
        shutil.rmtree(notes, ignore_errors=True)
        notes.mkdir(parents=True)
        given = {
            "bootstrap": task.options["bootstrap"], "topic": task.options["topic"], "rows": task.rows, "number": number,
            "options": TAKES_ALL, "state": str(notes / "state"), "note": str(notes / "0.json"),
        }  # fmt: skip
        subprocess.run([os.environ[QUIX], str(SCRIPT), json.dumps(given)], check=True, stdout=subprocess.DEVNULL, timeout=WAIT)  # noqa: S603 -- the interpreter that the user named
        yield answer_of(notes, task.rows, 1)
