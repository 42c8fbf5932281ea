"""What a process holds of the machine: memory, descriptors, threads, processes below it; and what lies in a folder.

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
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Self

import psutil

_SIZE = re.compile(r"^(Rss|Pss|Anonymous):\s+(\d+) kB", re.MULTILINE)
"""The kernel's own sums: psutil would add up each mapping, which stops a process with many for a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """MiB of resident memory, of the part that counts where others share it, and of that which is no file's; how many of the others."""

    rss: float = 0.0
    pss: float = 0.0
    anonymous: float = 0.0
    descriptors: int = 0
    threads: int = 0
    children: int = 0

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Of a process of this user, None if it is gone."""
        try:
            process = psutil.Process(pid)
            sizes = {name: int(size) / 1024 for name, size in _SIZE.findall(Path(f"/proc/{pid}/smaps_rollup").read_text())}
            descriptors, threads, children = process.num_fds(), process.num_threads(), len(process.children())
        except (OSError, psutil.Error):
            return None
        return cls(sizes["Rss"], sizes["Pss"], sizes["Anonymous"], descriptors, threads, children)

    def __add__(self, other: Footprint) -> Footprint:
        return Footprint(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


MEASURES = tuple(field.name for field in fields(Footprint))


def own_footprint() -> Footprint:
    """Of this process, once what only waits for the garbage collector is gone; the descriptor that counting takes is left out."""
    gc.collect()
    found = Footprint.of(os.getpid())
    assert found is not None
    return found


def own_threads() -> list[str]:
    """The names of this process's Python threads."""
    return sorted(thread.name for thread in threading.enumerate())


def together(footprints: Iterable[Footprint | None]) -> Footprint:
    """The sum of those that are there."""
    return sum((found for found in footprints if found is not None), Footprint())


def files_in(folder: Path) -> tuple[int, int]:
    """Files below a folder, and their bytes; those that go away meanwhile don't count."""
    count = size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 -- thousands of files, every ten seconds
            except OSError:
                continue
            count += 1
    return count, size
