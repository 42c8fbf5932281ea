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
        self._path: Path | None = None
        self._before = Spent(0.0, 0.0)

    def take(self) -> Spent:
        """What was spent since it was last asked; nothing at the first time."""
        first = self._path is None
        if self._path is None:
            self._path = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        now, before = read_schedstat(self._path), self._before
        self._before = now
        return Spent(0.0, 0.0) if first else Spent(now.on_cpu - before.on_cpu, now.waiting - before.waiting)


def read_schedstat(path: Path) -> Spent:
    """What the file says, in seconds; nothing if it doesn't."""
    try:
        on_cpu, waiting, _ = path.read_text().split()
    except (OSError, ValueError):  # another system, or a kernel that doesn't count
        return Spent(0.0, 0.0)
    return Spent(int(on_cpu) * NANOSECONDS, int(waiting) * NANOSECONDS)
