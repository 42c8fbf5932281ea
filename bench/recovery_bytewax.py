"""Bytewax stopped and resumed from its recovery store, with the stream and the state of `recovery_kill`.

Two processes of one worker each; both are killed, since a cluster of Bytewax ends with any of its processes, and both are started again at
once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .output_log import Resumed, outputs, resumed, writers
from .recovery_kill import INTERVAL, until
from .systems.bytewax import PROCESSES, free_ports

SNAPSHOTS = 2
"""Snapshots of all keys that must have begun before the kill, so that the first is in the store."""

PATIENCE = 600.0
"""Seconds to wait for new output: Bytewax has to read every key's state from its store, and then count in Python."""


def measure() -> Resumed | None:
    """One stop and one resume; the kill is half an interval after a snapshot. None if nothing new comes within `PATIENCE`."""
    folder = tempfile.mkdtemp(prefix="evenflow-bench-recovery-")
    for name in ("outputs", "store"):
        Path(folder, name).mkdir()
    _make_store(folder)
    running: list[subprocess.Popen[bytes]] = []
    try:
        running = _start(folder)
        until(lambda: _snapshots(folder) >= SNAPSHOTS or None, f"Bytewax has begun {SNAPSHOTS} snapshots of all keys")
        time.sleep(INTERVAL / 2)
        old, killed = writers(f"{folder}/outputs"), time.time_ns()
        _kill(running)
        running = _start(folder)
        while (found := resumed(outputs(f"{folder}/outputs"), killed, old)) is None and time.time_ns() < killed + PATIENCE * 1e9:
            time.sleep(0.1)
        return found
    finally:
        _kill(running)
        shutil.rmtree(folder)


def _make_store(folder: str) -> None:
    command = [sys.executable, "-m", "bytewax.recovery", f"{folder}/store", str(PROCESSES)]
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)  # noqa: S603 -- our own words


def _start(folder: str) -> list[subprocess.Popen[bytes]]:
    addresses = ";".join(f"127.0.0.1:{port}" for port in free_ports(PROCESSES))
    environment = {**os.environ, "EVENFLOW_BENCH_FOLDER": folder}
    options = ["-a", addresses, "-r", f"{folder}/store", "-s", str(int(INTERVAL)), "-b", "0"]
    command = [sys.executable, "-m", "bytewax.run", f"{__package__}.systems.bytewax_counts:flow", *options]
    errors = subprocess.DEVNULL  # each reports the other's end
    return [subprocess.Popen([*command, "-i", str(index)], env=environment, stderr=errors) for index in range(PROCESSES)]  # noqa: S603 -- our own words


def _kill(running: list[subprocess.Popen[bytes]]) -> None:
    for process in running:
        process.kill()
    for process in running:
        process.wait(30)


def _snapshots(folder: str) -> int:
    """How many snapshots of all keys every partition has begun."""
    marks = [path.read_text().count("\n") for path in Path(folder).glob("snapshots-*")]
    return min(marks) if len(marks) == PROCESSES else 0
