"""The heap of a worker's process: the memory of one batch's arrays serves the next batch's.

By itself glibc maps arrays of 128 KiB and more anew each time, and gives what is free at the end of the heap back to the kernel, which has
to clear each page once more. Here a worker keeps up to `KEPT` bytes that are free. Larger arrays, such as those of state, are still mapped
on their own, and their memory goes back at once. See mallopt(3).

Arrow's own default, mimalloc, gives huge pages back after ten milliseconds, and the kernel clears two megabytes to replace one. Arrow's
jemalloc keeps what is free for a second.
"""

from __future__ import annotations

import ctypes
import os

import pyarrow as pa

MAPPED = 4 << 20
"""Bytes from which on an array is mapped on its own."""

KEPT = 64 << 20
"""The most bytes that stay free at the end of a heap."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""

_BY_ENVIRONMENT = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"


def keep_freed_memory() -> None:
    """Set this process's allocators up. One that the environment sets up, or that isn't there, is left as it is."""
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and not any(name in os.environ for name in _BY_ENVIRONMENT):
        mallopt(_MMAP_THRESHOLD, MAPPED)
        mallopt(_TRIM_THRESHOLD, KEPT)


def give_back_freed_memory() -> None:
    """Return to the kernel what is free now: state that this process no longer has."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
