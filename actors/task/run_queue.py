"""How long a thread was ready to run while others had the CPUs, as Linux counts it for each thread.

A worker's useful time is what its records cost. On a busy machine the clock says more than that: DS2 would then find that each further
worker makes all of them slower, and never settle. Processor time says less: a function that waits for a service is busy too. What is to be
left out is exactly the time in the run queue (`/proc/PID/task/TID/schedstat`: nanoseconds on a CPU, nanoseconds ready without one).

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
    """The calling thread's, from its first question on: always asked by the same one."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._before = Spent(0.0, 0.0)

    def take(self) -> Spent:
        """What was spent since it was last asked; nothing at the first time."""
        now = self.so_far()
        before, self._before = self._before, now
        return Spent(now.on_cpu - before.on_cpu, now.waiting - before.waiting)

    def so_far(self) -> Spent:
        """What the thread has spent in all; takes about a microsecond."""
        if self._file is None:
            self._file = open_schedstat(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat"))
            self._before = read_schedstat(self._file)
        return read_schedstat(self._file)

    def __del__(self) -> None:
        if self._file is not None and self._file >= 0:
            os.close(self._file)


def open_schedstat(path: Path) -> int:
    """A descriptor of the file, -1 if there is none: another system."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def read_schedstat(file: int) -> Spent:
    """What the file says, in seconds; nothing if it doesn't: a kernel that doesn't count."""
    try:
        on_cpu, waiting, _ = os.pread(file, 96, 0).split()
        return Spent(int(on_cpu) * NANOSECONDS, int(waiting) * NANOSECONDS)
    except (OSError, ValueError):
        return Spent(0.0, 0.0)
