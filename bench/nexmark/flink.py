"""NexMark's queries in Flink's SQL, by an interpreter that has apache-flink: a local cluster with two slots in its JVM."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..harness.task import Answer, Task
from .flink_sql import QUERIES, SETTINGS, TABLES

SCRIPT = Path(__file__).with_name("flink_job.py")
CHANGES = "changes.txt"
"""The file in the output folder with the changes of the checked query, as Flink prints them."""

WAIT = 3000


def run(task: Task) -> Iterator[Answer]:
    """Run all iterations in one JVM. The least time of the query over one row, which is mostly starting, is subtracted.

    `options["checked"]`: the folder of the CSV files of the checked run; `options["python"]`: Flink's interpreter.
    """
    output = Path(task.output)
    output.mkdir(parents=True, exist_ok=True)
    given = {
        "tables": TABLES, "settings": SETTINGS, "query": QUERIES[task.name], "folder": task.folder, "repeat": task.repeat,
        "checked": task.options["checked"],
    }  # fmt: skip
    with tempfile.NamedTemporaryFile("r", suffix=".json") as answers, (output / CHANGES).open("w") as changes:
        command = [task.options["python"], str(SCRIPT), json.dumps(given), answers.name]
        subprocess.run(command, check=True, stdout=changes, timeout=WAIT)  # noqa: S603 -- the interpreter that we installed
        found = json.load(answers)
    starting = {what: min(each[what] for each in found["empty"]) for what in ("seconds", "cpu_seconds")}
    for each in found["measured"]:
        details = {"starting": starting["seconds"], "cpu_seconds": each["cpu_seconds"] - starting["cpu_seconds"]}
        yield Answer(each["seconds"] - starting["seconds"], task.rows, {}, details)
