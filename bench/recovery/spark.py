"""A Spark Structured Streaming query killed and started again, with the stream and the state of `kill` in its RocksDB state store.

The whole process is killed, as the driver of `local[2]` is its only worker. In its favour, it takes a checkpoint after every micro-batch,
so it repeats at most one batch, and results are only computed, not written.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass

from ..harness.conditions import scratch
from ..harness.jobs import until
from ..harness.process import end_group
from .kill import WAIT, rows_written
from .output_log import KEYS, Resumed, outputs, resumed, writers


@dataclass(frozen=True, slots=True)
class Restarted:
    """Seconds from the kill until Spark's session was up again, mostly the start of its JVM, and until its output resumed."""

    session: float
    resumed: Resumed


def measure() -> Restarted:
    """Kill the query once it has all keys and has counted a fifth of them again, and start it again."""
    with scratch("recovery") as folder:
        log = folder / "outputs"
        log.mkdir()
        running = _start(str(folder))
        try:
            until(lambda: rows_written(str(log)) >= 1.2 * KEYS, "Spark has all keys", WAIT)
            old, killed = writers(str(log)), time.time_ns()
            end_group(running)
            running = _start(str(folder))
            found = until(lambda: resumed(outputs(str(log)), killed, old), "Spark writes new output after the kill", WAIT)
            return Restarted((int((folder / "session").read_text()) - killed) / 1e9, found)
        finally:
            end_group(running)


def _start(folder: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"{__package__}.spark_query", folder]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)  # noqa: S603 -- our own interpreter and module
