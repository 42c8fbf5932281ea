"""The memory that the processes of a job take before they hold any state, and a check that a cluster has as much, without I/O.

>>> words(processes=61)
'about 9.5 GB'
>>> memory_problem(workers=60, free=4e9)
"its 60 workers and their coordinator take about 9.5 GB of memory, and the cluster's nodes have 4.0 GB: lower parallelism, or add nodes"
>>> memory_problem(workers=4, free=4e9) is None
True
"""

from __future__ import annotations

PROCESS_BYTES = 155_000_000
"""Private memory of a worker or a coordinator with Python, Arrow and Ray, measured with 60 workers of one job
(`docs/decisions/048-restarts.md`). It excludes state and modules that users' functions load.
"""


def words(processes: int) -> str:
    """Return the memory of that many processes, as text."""
    return f"about {_shown(processes * PROCESS_BYTES)}"


def memory_problem(workers: int, free: float) -> str | None:
    """Return why a job of that many workers may not fit on nodes with `free` bytes of memory; None if it fits."""
    if (workers + 1) * PROCESS_BYTES <= free:
        return None
    return (
        f"its {workers} workers and their coordinator take {words(workers + 1)} of memory, and the cluster's nodes have {_shown(free)}: "
        "lower parallelism, or add nodes"
    )


def _shown(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
