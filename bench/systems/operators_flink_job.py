"""Runs in Flink's environment, alone: `python operators_flink_job.py TASK ANSWERS`, both JSON.

In its favour: objects are reused between operators, and the heap may take 8 GB.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("JAVA_TOOL_OPTIONS", "-Xmx8g")

from pyflink.table import EnvironmentSettings, TableEnvironment

SINKS = {
    "join": "`key` BIGINT, a BIGINT, b BIGINT, t BIGINT",
    "session": "`key` BIGINT, t BIGINT, n BIGINT, total DOUBLE",
    "top": "`key` BIGINT, t BIGINT, v DOUBLE",
}
JOIN = """
INSERT INTO results SELECT l.`key`, l.seq, r.seq, l.ts
FROM `left` l JOIN `right` r ON l.`key` = r.`key` AND r.t BETWEEN l.t AND l.t + INTERVAL '1' SECOND
"""
SESSION = """
INSERT INTO results SELECT `key`, MAX(ts), COUNT(*), SUM(v)
FROM TABLE(SESSION(TABLE `left` PARTITION BY `key`, DESCRIPTOR(t), INTERVAL '20' SECOND))
GROUP BY `key`, window_start, window_end
"""
TOP = """
INSERT INTO results SELECT `key`, ts / 10000 * 10000, v FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, `key` ORDER BY v DESC, ts DESC) AS place
    FROM TABLE(TUMBLE(TABLE `left`, DESCRIPTOR(t), INTERVAL '10' SECOND))
) WHERE place <= 3
"""
QUERIES = {"join": JOIN, "session": SESSION, "top": TOP}


def seconds_of(name: str, folder: str, output: str) -> float:
    """Seconds of one run of the query."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"parallelism.default": "2", "pipeline.object-reuse": "true", "table.local-time-zone": "UTC"}.items():
        tables.get_config().set(key, value)
    for side in ("left", "right"):
        where = f"'connector'='filesystem', 'path'='{folder}/{side}', 'format'='csv'"
        time_column = "t AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR t AS t - INTERVAL '0.050' SECOND"
        tables.execute_sql(f"CREATE TABLE `{side}` (`key` BIGINT, ts BIGINT, v DOUBLE, seq BIGINT, {time_column}) WITH ({where})")
    tables.execute_sql(f"CREATE TABLE results ({SINKS[name]}) WITH ('connector'='filesystem', 'path'='{output}', 'format'='csv')")
    begun = time.monotonic()
    tables.execute_sql(QUERIES[name]).wait()
    return time.monotonic() - begun


def main() -> None:
    """All iterations, after the same query over one row, three times."""
    task, answers = json.loads(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as small:
        for side in ("left", "right"):
            Path(small, side).mkdir()
            Path(small, side, "0.csv").write_text("1,1700000000000,1.0,1\n")
        empty = min(seconds_of(task["name"], small, f"{small}/out-{i}") for i in range(3))
    seconds = []
    for _ in range(task["repeat"]):
        shutil.rmtree(task["output"], ignore_errors=True)
        seconds.append(seconds_of(task["name"], task["folder"], task["output"]))
    answers.write_text(json.dumps({"empty": empty, "seconds": seconds}))


if __name__ == "__main__":
    main()
