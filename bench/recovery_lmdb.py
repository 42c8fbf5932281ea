"""State in LMDB beside state in memory: T2 at full speed, and more state than the workers may have memory.

A kernel limit on private memory (RLIMIT_DATA) bounds a worker. LMDB's maps are page cache, which doesn't count there, and which the kernel
can reclaim; without a limit it stays while the machine has room.
"""

from __future__ import annotations

import math
import re
import resource
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evenflow as ef

from .conditions import scratch
from .data import find
from .live_stream import OutputSink
from .migration import rows_taken
from .output_log import processes
from .preload import PreloadedSource
from .process import run_system
from .recovery_kill import until
from .task import Answer, Task

BACKENDS = ("memory", "lmdb")
TIMEOUT = 600.0
GIVEN = 32 << 20
"""Bytes of private memory that each of two workers may take beyond what it has before the first record."""

FOLD = 10
VALUE = 1000
"""Bytes of each key's state."""


def throughput(rows: int, cache: Path, repeat: int) -> dict[str, list[Answer]]:
    """T2 with each backend in turn. Raises ConnectorError without data, BenchmarkError if the results differ."""
    dataset, output = find(cache, "integers", rows), scratch("backends")
    settings = [{"state": {"backend": backend}} for _ in range(repeat) for backend in BACKENDS]
    task = Task("t2", str(dataset.folder), rows, dataset.last_window, f"{output}/out", len(settings), {"config": settings})
    try:
        answers = run_system("evenflow", task, TIMEOUT)
    finally:
        shutil.rmtree(output)
    return {backend: answers[place :: len(BACKENDS)] for place, backend in enumerate(BACKENDS)}


@dataclass(frozen=True, slots=True)
class Larger:
    """Bytes of state, of private memory that the workers used for it, and of their private memory limit."""

    state: int
    taken: int
    given: int


def larger_than_memory() -> Larger:
    """Run a job whose state is `FOLD` times its workers' memory limit. Raises JobFailedError if it fails."""
    keys = math.ceil(FOLD * 2 * GIVEN / VALUE)
    folder = tempfile.mkdtemp(prefix="evenflow-bench-lmdb-")
    log = Path(folder, "outputs")
    log.mkdir()
    flow = ef.Dataflow("bench-lmdb")
    flow.read(PreloadedSource(keys, 1000.0)).key_by("key").stateful_map(keep).write(OutputSink(str(log)))
    try:
        job = flow.run(
            config=ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(interval=None), state=ef.StateConfig("lmdb", dir=folder))
        )
        try:
            workers = until(lambda: _both(str(log)), "both workers have had a record")
            until(lambda: _all_or_failed(job, keys // 20), "a twentieth of the keys is there", TIMEOUT)
            before = [private(pid) for pid in workers]
            for pid in workers:
                limit = allocated(pid) + GIVEN
                resource.prlimit(pid, resource.RLIMIT_DATA, (limit, limit))
            until(lambda: _all_or_failed(job, keys), f"{keys:,} keys are in LMDB", TIMEOUT)
            taken = sum(private(pid) for pid in workers) - sum(before)
        finally:
            job.cancel()
            job.wait(TIMEOUT)
    finally:
        shutil.rmtree(folder)
    return Larger(keys * VALUE, taken, 2 * GIVEN)


def keep(_state: bytes | None, row: Mapping[str, Any]) -> tuple[bytes, dict[str, int]]:
    """A state of `VALUE` bytes."""
    return row["key"].to_bytes(8, "little") * (VALUE // 8), {"seq": row["key"], "n": 1}


def private(pid: int) -> int:
    """Resident private memory of a process, which the kernel can't reclaim (bytes)."""
    return _status(pid, "RssAnon")


def allocated(pid: int) -> int:
    """Private memory that a process has asked for: what RLIMIT_DATA counts (bytes)."""
    return _status(pid, "VmData")


def _status(pid: int, field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) << 10 if found else 0


def _both(log: str) -> Sequence[int] | None:
    found = processes(log)
    return found if len(found) == 2 else None


def _all_or_failed(job: ef.Job, keys: int) -> bool | None:
    """Whether all keys have been read. Raises the job's error."""
    error = job.status().error
    if error is not None:
        raise error
    return rows_taken(job) >= keys or None
