"""The heap of a worker's process: the memory of one batch's arrays serves the next batch's.

By default glibc maps arrays of 128 KiB and more separately each time, and returns free memory at the end of the heap to the
kernel, which has to clear each page again. Here a worker keeps up to `KEPT` free bytes. Larger arrays, such as those of state,
are still mapped separately, and their memory is returned at once. See mallopt(3).

Arrow's own default, mimalloc, returns huge pages after ten milliseconds, and the kernel clears two megabytes to replace one.
Arrow's jemalloc keeps free memory for a second.
"""

from __future__ import annotations

import ctypes
import os

import pyarrow as pa

MAPPED = 4 << 20
"""The size in bytes from which an array is mapped separately."""

KEPT = 64 << 20
"""The most bytes that stay free at the end of a heap."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""

_BY_ENVIRONMENT = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"


def keep_freed_memory() -> None:
    """Configure this process's allocators, except one that the environment configures or that doesn't exist."""
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and not any(name in os.environ for name in _BY_ENVIRONMENT):
        mallopt(_MMAP_THRESHOLD, MAPPED)
        mallopt(_TRIM_THRESHOLD, KEPT)


def give_back_freed_memory() -> None:
    """Return free memory to the kernel: that of state which this process no longer has."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
