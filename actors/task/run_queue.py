"""The time that a thread was ready to run without a CPU, as Linux counts it for each thread.

A worker's useful time is the cost of its records. On a busy machine wall-clock time is more than that: DS2 would find that each
further worker makes all of them slower, and never settle. Processor time is less: a function that waits for a service is busy
too. So exactly the time in the run queue is subtracted (`/proc/PID/task/TID/schedstat`: nanoseconds on a CPU, nanoseconds ready
without one).

Invariant: if the system doesn't count it, the waiting time is 0.

>>> spent = RunQueue().take()
>>> spent.on_cpu >= 0.0 and spent.waiting >= 0.0
True
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

NANOSECONDS = 1e-9


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds that a thread was `on_cpu`, and that it was ready but `waiting` for one."""

    on_cpu: float
    waiting: float


class RunQueue:
    """The times of the calling thread, from its first call on; always called by the same thread."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._before = Spent(0.0, 0.0)

    def take(self) -> Spent:
        """Return the time spent since the last call; zeros at the first."""
        now = self.so_far()
        before, self._before = self._before, now
        return Spent(now.on_cpu - before.on_cpu, now.waiting - before.waiting)

    def so_far(self) -> Spent:
        """Return the total time that the thread has spent; takes about a microsecond."""
        if self._file is None:
            self._file = open_schedstat(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat"))
            self._before = read_schedstat(self._file)
        return read_schedstat(self._file)

    def __del__(self) -> None:
        if self._file is not None and self._file >= 0:
            os.close(self._file)


def open_schedstat(path: Path) -> int:
    """Return a descriptor of the file, -1 if it doesn't exist, on other systems."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def read_schedstat(file: int) -> Spent:
    """Return the file's content in seconds; zeros if a kernel doesn't count."""
    try:
        on_cpu, waiting, _ = os.pread(file, 96, 0).split()
        return Spent(int(on_cpu) * NANOSECONDS, int(waiting) * NANOSECONDS)
    except (OSError, ValueError):
        return Spent(0.0, 0.0)
