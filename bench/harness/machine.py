"""The conditions of a run: the machine, the versions, the commit, and the load by other programs."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import psutil

from ...actors.processes.own_process import ACTORS, RESTING
from .background import Background

PACKAGES = ("evenflow", "ray", "pyspark", "pyarrow", "numpy", "pyzmq", "duckdb", "bytewax")
NEW_PROCESSES_EVERY = 0.25
"""Seconds between two searches for new processes."""


def describe() -> dict[str, Any]:
    """Return processor, cores, memory and operating system."""
    return {
        "processor": _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Return the installed versions of the systems that are compared."""
    found = dict.fromkeys(PACKAGES, "not installed")
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def commit() -> str:
    """Return the checkout's commit, with `+changes` if files differ from it; `unknown` outside a checkout."""
    here = Path(__file__).parent
    try:
        head = _git(here, "rev-parse", "--short=12", "HEAD")
        return head + ("+changes" if _git(here, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def busy_share(seconds: float = 1.0) -> float:
    """Sleep for `seconds`, and return the share of all cores that other programs used meanwhile."""
    return round(psutil.cpu_percent(interval=seconds) / 100, 3)


class CpuWatch(Background):
    """Processor time of this process and its descendants in the context; other programs hardly change it.

    It covers the processes that exist at the beginning, and with `newcomers` also later ones. A process that ends counts with its last
    value, at most `interval` seconds old.
    """

    def __init__(self, interval: float = 0.02, *, newcomers: bool = False) -> None:
        super().__init__(interval, "cpu")
        self._newcomers = newcomers
        self._searched = time.monotonic()

    def __enter__(self) -> Self:
        pids = (os.getpid(), *descendants(os.getpid()))
        self._first = {pid: cpu_of(pid) or 0.0 for pid in pids}
        self._last = dict(self._first)
        return super().__enter__()

    def stop(self) -> None:
        super().stop()
        self._read()

    @property
    def seconds(self) -> float:
        """Seconds used so far."""
        return round(sum(self._last.values()) - sum(self._first.values()), 3)

    def _step(self) -> None:
        if self._newcomers and time.monotonic() > self._searched + NEW_PROCESSES_EVERY:
            self._searched = time.monotonic()
            self._last = dict.fromkeys(descendants(os.getpid()), 0.0) | self._last
        self._read()

    def _read(self) -> None:
        for pid in self._last:
            now = cpu_of(pid)
            if now is not None:
                self._last[pid] = now


def rss_bytes(pid: int) -> int:
    """Return the resident memory of a process, 0 if it has ended."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def cpu_of(pid: int) -> float | None:
    """Return user and system time of a process in seconds, None if it has ended."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system)


def descendants(root: int) -> dict[int, str]:
    """Return the process ids below `root`, with the first word of their command lines."""
    found = {}
    for process in psutil.Process(root).children(recursive=True):
        with suppress(psutil.Error):
            found[process.pid] = next(iter(process.cmdline()), "")
    return found


def workers_below(root: int) -> list[int]:
    """Return the process ids of evenflow's actors below `root` that run a job, by the titles of their processes."""
    return [pid for pid, name in descendants(root).items() if name.startswith(ACTORS) and not name.endswith(RESTING)]


def _field(path: Path, name: str) -> str | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603, S607 -- fixed words, and git as the user has it
