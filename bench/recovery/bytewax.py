"""Bytewax stopped and resumed from its recovery store, with the stream and the state of `kill`, in two processes of one worker each.

Both processes are killed, since a cluster of Bytewax ends with any of them, and both are started again at once.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ..baselines.bytewax import PROCESSES, kill, start_cluster
from ..harness.conditions import scratch
from ..harness.jobs import until
from .kill import INTERVAL, WAIT
from .output_log import Resumed, outputs, resumed, writers

SNAPSHOTS = 2
"""Snapshots of all keys that must have begun before the kill, so that the first is in the store."""

PATIENCE = 600.0
"""Seconds to wait for new output: Bytewax has to read every key's state from its store, and then count in Python."""

FLOW = f"{__package__}.bytewax_flow:flow"


def measure() -> Resumed | None:
    """Kill both processes half an interval after a snapshot. Returns None if nothing new is written within `PATIENCE`."""
    with scratch("recovery") as folder:
        log, store = str(folder / "outputs"), str(folder / "store")
        for path in (log, store):
            Path(path).mkdir()
        subprocess.run([sys.executable, "-m", "bytewax.recovery", store, str(PROCESSES)], check=True, timeout=60, stdout=subprocess.DEVNULL)  # noqa: S603 -- our own words
        options = ("-r", store, "-s", str(int(INTERVAL)), "-b", "0")
        running = start_cluster(FLOW, {"EVENFLOW_BENCH_FOLDER": str(folder)}, *options)
        try:
            until(lambda: _snapshots(folder) >= SNAPSHOTS, f"Bytewax has begun {SNAPSHOTS} snapshots of all keys", WAIT)
            time.sleep(INTERVAL / 2)
            old, killed = writers(log), time.time_ns()
            kill(running)
            running = start_cluster(FLOW, {"EVENFLOW_BENCH_FOLDER": str(folder)}, *options)
            while (found := resumed(outputs(log), killed, old)) is None and time.time_ns() < killed + PATIENCE * 1e9:
                time.sleep(0.1)
            return found
        finally:
            kill(running)


def _snapshots(folder: Path) -> int:
    """Return how many snapshots of all keys every partition has begun."""
    marks = [path.read_text().count("\n") for path in folder.glob("snapshots-*")]
    return min(marks) if len(marks) == PROCESSES else 0
