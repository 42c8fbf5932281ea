"""The resources of a process: memory, descriptors, threads, child processes; and the files in a folder.

>>> import os
>>> own = Footprint.of(os.getpid())
>>> own.rss > 1.0, own.descriptors >= 3, own.threads >= 1
(True, True, True)
"""

from __future__ import annotations

import gc
import os
import re
import threading
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Self

import psutil

_SIZE = re.compile(r"^(Rss|Pss|Anonymous):\s+(\d+) kB", re.MULTILINE)
"""The kernel's own sums: psutil would add up each mapping, which stops a process with many for a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The resources of a process: memory in MiB (resident, proportional and anonymous), and counts of the others."""

    rss: float = 0.0
    pss: float = 0.0
    anonymous: float = 0.0
    descriptors: int = 0
    threads: int = 0
    children: int = 0

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Measure a process of this user; None if it has ended."""
        try:
            process = psutil.Process(pid)
            sizes = {name: int(size) / 1024 for name, size in _SIZE.findall(Path(f"/proc/{pid}/smaps_rollup").read_text())}
            descriptors, threads, children = process.num_fds(), process.num_threads(), len(process.children())
        except (OSError, psutil.Error):
            return None
        return cls(sizes["Rss"], sizes["Pss"], sizes["Anonymous"], descriptors, threads, children)

    def __add__(self, other: Footprint) -> Footprint:
        return Footprint(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def own_footprint() -> Footprint:
    """Measure this process after a garbage collection."""
    gc.collect()
    found = Footprint.of(os.getpid())
    assert found is not None
    return found


def own_threads() -> list[str]:
    """Return the names of this process's Python threads."""
    return sorted(thread.name for thread in threading.enumerate())


def together(footprints: Iterable[Footprint | None]) -> Footprint:
    """Return the sum of the footprints that are not None."""
    return sum((found for found in footprints if found is not None), Footprint())


def files_in(folder: Path) -> tuple[int, int]:
    """Return the number of files below a folder, and their bytes, without files that vanish meanwhile."""
    count = size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 -- thousands of files, every ten seconds
            except OSError:
                continue
            count += 1
    return count, size
