"""NexMark's queries in Flink's SQL, by an interpreter that has apache-flink: a local cluster with two slots in its JVM."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..nexmark.flink_sql import QUERIES, SETTINGS, TABLES
from ..operators import FLINK
from ..task import Answer, Task

SCRIPT = Path(__file__).with_name("nexmark_flink_job.py")
CHANGES = "changes.txt"
"""The file in the output folder with the changes that the checked query gave, as Flink prints them."""


def run(task: Task) -> Iterator[Answer]:
    """One JVM for all iterations; the least that the query takes over one row, which is mostly starting, is taken off.

    `options["checked"]`: the folder of the CSV files of the checked run, None for no such run.
    """
    output = Path(task.output)
    output.mkdir(parents=True, exist_ok=True)
    given = {
        "tables": TABLES, "settings": SETTINGS, "query": QUERIES[task.name], "folder": task.folder, "repeat": task.repeat,
        "checked": task.options.get("checked"),
    }  # fmt: skip
    with tempfile.NamedTemporaryFile("r", suffix=".json") as answers, (output / CHANGES).open("w") as changes:
        command = [os.environ[FLINK], str(SCRIPT), json.dumps(given), answers.name]
        subprocess.run(command, check=True, stdout=changes, timeout=3000)  # noqa: S603 -- the interpreter that the user named
        found = json.load(answers)
    starting = {what: min(each[what] for each in found["empty"]) for what in ("seconds", "cpu_seconds")}
    for each in found["measured"]:
        details = {"starting": starting["seconds"], "cpu_seconds": each["cpu_seconds"] - starting["cpu_seconds"]}
        yield Answer(each["seconds"] - starting["seconds"], task.rows, {}, details)
