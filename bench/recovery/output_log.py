"""Logs when results of an endless count per key were written, in a file per writing process, which outlives it.

Row `seq` of the stream has the key `key_of(seq, keys, changing)`: every key comes once, and then `changing` of them take turns. So the
count that belongs to a row is known, and a wrong one shows state that was lost or counted twice.

>>> len(np.unique(key_of(np.arange(KEYS), KEYS, 100))), len(np.unique(key_of(np.arange(KEYS, 2 * KEYS), KEYS, 100)))
(1000000, 100)
>>> wrong_counts(np.array([0, 5, KEYS + 5]), np.array([1, 1, 1]), KEYS, KEYS)
1
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

KEYS = 1_000_000
"""The usual number of keys."""

RATE = 100_000
"""Rows a second after the first of each key, which come as fast as the system takes them."""

STATE_BYTES = 64
_STEP = 611_953
"""A prime: it spreads rows that follow each other over the keys."""

Seqs = npt.NDArray[np.int64]


def key_of(seq: Seqs, keys: int, changing: int) -> Seqs:
    """Return the key of each row; `changing`: the number of keys among `keys` that get more than one row."""
    return np.where(seq < keys, seq, (seq - keys) % changing) * _STEP % keys


def wrong_counts(seq: Seqs, counts: npt.NDArray[np.int64], keys: int, changing: int) -> int:
    """Return the number of counts that are wrong for their rows."""
    return int(np.count_nonzero(counts != np.where(seq < keys, 1, (seq - keys) // changing + 2)))


def due(begun: int, now: int, keys: int, rate: int = RATE) -> int:
    """Return the number of rows due at `now`; the first of each key were due at `begun` (both ns, wall clock).

    >>> due(0, 10_000_000, KEYS) - KEYS
    1000
    """
    return keys + (now - begun) * rate // 1_000_000_000


@dataclass(frozen=True, slots=True)
class Output:
    """A batch of results: its writer, its time (ns, wall clock), its newest row, its number of rows and of wrong counts."""

    writer: str
    at: int
    newest: int
    rows: int
    wrong: int


class OutputLog:
    """Appends a line per batch to a file of its own in `folder`, named after the process."""

    def __init__(self, folder: str) -> None:
        self._file = (Path(folder) / f"{os.getpid()}-{uuid.uuid4().hex[:8]}").open("w", buffering=1)

    def note(self, newest: int, rows: int, wrong: int) -> None:
        """Log a batch of results that is written now."""
        self._file.write(f"{time.time_ns()} {newest} {rows} {wrong}\n")

    def note_counts(self, seq: Seqs, counts: npt.NDArray[np.int64], keys: int, changing: int) -> None:
        """Log a batch of counts that is written now."""
        self.note(int(seq.max()), len(seq), wrong_counts(seq, counts, keys, changing))

    def close(self) -> None:
        self._file.close()


def processes(folder: str) -> list[int]:
    """Return the ids of the processes that have written."""
    return sorted({int(path.name.partition("-")[0]) for path in Path(folder).iterdir() if path.stat().st_size})


def writers(folder: str) -> frozenset[str]:
    """Return the names of the writers; each attempt of a job has its own."""
    return frozenset(path.name for path in Path(folder).iterdir())


def outputs(folder: str) -> list[Output]:
    """Return all results by time, without the truncated last line of a killed process."""
    found = []
    for path in Path(folder).iterdir():
        whole = (line.split() for line in path.read_text().splitlines(keepends=True) if line.endswith("\n"))
        found += [Output(path.name, *map(int, words)) for words in whole]
    return sorted(found, key=lambda output: output.at)


@dataclass(frozen=True, slots=True)
class Resumed:
    """Seconds from a kill to the first output of a new attempt, and to the first `new` output; the number of wrong counts."""

    first: float
    new: float
    wrong: int


def resumed(written: Sequence[Output], killed: int, old: Collection[str]) -> Resumed | None:
    """Summarise the output after the kill (ns) by writers that are not among the `old` ones; None if nothing new was written yet.

    >>> log = [Output("a", 1, 10, 5, 0), Output("a", 2, 11, 5, 0), Output("b", 5, 10, 5, 0), Output("b", 9, 12, 5, 0)]
    >>> resumed(log, 3, {"a"})
    Resumed(first=2e-09, new=6e-09, wrong=0)
    """
    before = max((output.newest for output in written if output.writer in old), default=-1)
    after = [output for output in written if output.writer not in old]
    newer = next((output for output in after if output.newest > before), None)
    if newer is None:
        return None
    return Resumed((after[0].at - killed) / 1e9, (newer.at - killed) / 1e9, sum(output.wrong for output in after))
