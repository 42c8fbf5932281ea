"""A Spark Structured Streaming query killed and started again, with the state of `recovery_kill` in its RocksDB state store.

The whole process is killed, as the driver of `local[2]` is its only worker. In its favour: it takes a checkpoint after every micro-batch,
so it repeats at most one batch, and results are only computed, not written.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from .output_log import KEYS, Resumed, outputs, resumed, writers
from .recovery_kill import until


@dataclass(frozen=True, slots=True)
class Restarted:
    """`session`: seconds from the kill until Spark's session was up again, mostly the start of its JVM."""

    session: float
    resumed: Resumed


def measure() -> Restarted:
    """One kill and one start, once all keys have come and two batches more."""
    folder = tempfile.mkdtemp(prefix="evenflow-bench-recovery-")
    log = f"{folder}/outputs"
    Path(log).mkdir()
    running = _start(folder)
    try:
        until(lambda: sum(output.rows for output in outputs(log)) >= 1.2 * KEYS or None, "Spark has all keys")
        old, killed = writers(log), time.time_ns()
        _kill(running)
        running = _start(folder)
        found = until(lambda: resumed(outputs(log), killed, old), "Spark gives new output after the kill")
        return Restarted((int(Path(folder, "session").read_text()) - killed) / 1e9, found)
    finally:
        _kill(running)
        shutil.rmtree(folder)


def _start(folder: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"{__package__}.systems.spark_counts", folder]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)  # noqa: S603 -- our own interpreter and module


def _kill(running: subprocess.Popen[bytes]) -> None:
    """Kill the process with its JVM; the group is its own."""
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
    running.wait(30)
