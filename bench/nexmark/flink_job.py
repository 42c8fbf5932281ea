"""Runs a query in Flink's environment: `python flink_job.py TASK ANSWERS`, both JSON.

It discards the measured query's rows, and prints the checked one's. In Flink's favour, the heap may take 6 GB.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("JAVA_TOOL_OPTIONS", "-Xmx6g")

from pyflink.table import EnvironmentSettings, TableEnvironment

STREAMS = ("person", "auction", "bid")


def run(task: dict[str, Any], folder: str, sink: str) -> dict[str, float]:
    """Run the query once; returns its seconds, by the clock and of the JVM's processor time."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in task["settings"].items():
        tables.get_config().set(key, value)
    for statement in task["tables"]:
        tables.execute_sql(statement.replace("FOLDER", folder))
    begun, used = time.monotonic(), jvm_seconds()
    tables.execute_sql(f"CREATE TABLE results WITH ({sink}) AS {task['query']}").wait()
    return {"seconds": time.monotonic() - begun, "cpu_seconds": jvm_seconds() - used}


def jvm_seconds() -> float:
    """Return the processor time of the children of this process."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run the checked query and all iterations, and the query over one row of each stream, while the JVM is cold and once it is warm."""
    task, answers = json.loads(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as small:
        for stream in STREAMS:
            Path(small, stream).mkdir()
            with Path(task["folder"], stream, "000.csv").open() as lines:
                Path(small, stream, "000.csv").write_text(lines.readline())
        empty = [run(task, small, "'connector'='blackhole'") for _ in range(2)]
        run(task, task["checked"], "'connector'='print'")
        measured = [run(task, task["folder"], "'connector'='blackhole'") for _ in range(task["repeat"])]
        empty += [run(task, small, "'connector'='blackhole'") for _ in range(2)]
    answers.write_text(json.dumps({"empty": empty, "measured": measured}))


if __name__ == "__main__":
    main()
