"""Reads of an LMDB file that doesn't fit into memory: several threads wait for the disk at the same time.

A read of a page that is not in memory is a major page fault, and a thread has one at a time. So one thread uses a fraction of what a
disk can do. The first keys of a batch show if pages are missing. If so, the other keys are sorted, so that neighbours share
pages, and divided among threads.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import lmdb

SAMPLE = 64
"""The keys of a batch that are read first. Batches with fewer keys are read by one thread."""

MOST_FAULTS = 8
"""The major page faults of the sample from which on threads read the rest."""

THREADS = 8

_CALLER = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
"""This thread; on systems other than Linux, this process."""


class PageReads:
    """The reads of one environment, which needs at least `READERS` readers."""

    READERS = 2 * THREADS

    def __init__(self, env: lmdb.Environment) -> None:
        self._env = env
        self._pool: ThreadPoolExecutor | None = None

    def values(self, txn: lmdb.Transaction, places: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each place, None where there is none. `txn`: a transaction that sees all writes."""
        get = cast("Callable[[bytes], bytes | None]", txn.get)  # no views of its buffers
        before = _major_faults()
        found = list(map(get, places[:SAMPLE]))
        rest = places[SAMPLE:]
        if not rest or _major_faults() - before < MOST_FAULTS:
            return found + list(map(get, rest))
        return found + self.side_by_side(rest)

    def side_by_side(self, places: Sequence[bytes]) -> list[bytes | None]:
        """Return what `values` does; `THREADS` threads read, each a part of the sorted places."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="state-reads")
        ordered = sorted(places)
        part = -(-len(ordered) // THREADS)
        found: dict[bytes, bytes] = {}
        for items in self._pool.map(self._items, (ordered[first : first + part] for first in range(0, len(ordered), part))):
            found.update(items)
        return list(map(found.get, places))

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _items(self, places: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        with self._env.begin() as txn, txn.cursor() as cursor:
            return cursor.getmulti(places)


def _major_faults() -> int:
    """Return the number of page faults that waited for the disk."""
    return resource.getrusage(_CALLER).ru_majflt
