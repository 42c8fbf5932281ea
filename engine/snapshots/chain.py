"""A chain of state files: a full state, then the changes of each checkpoint; read from the newest file back.

A chunk may *replace* the older rows of its keys: its schema's metadata names the columns that make the key. If it has no
other columns, its keys are deleted. Invariant: a chunk refers to older files of its own chain only. So the order of chunks
within a file doesn't matter, and the chains of different workers are independent.

>>> whole = pa.record_batch({"key": ["a", "b", "c"], "n": [1, 2, 3]})
>>> changed = replacing(pa.record_batch({"key": ["b"], "n": [7]}), ["key"])
>>> gone = replacing(pa.record_batch({"key": ["c"]}), ["key"])
>>> [chunk.to_pydict() for chunk in resolved([[changed, gone], [whole]])]
[{'key': ['b'], 'n': [7]}, {'key': ['a'], 'n': [1]}]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgpack
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..keys.codec import KeyCodec
from ..keys.encoding import KeyTypes, key_hashes

REPLACES = b"evenflow.replaces"
"""Schema metadata of a chunk: the names of the columns that make the keys that it replaces, as a msgpack array."""


def replacing(rows: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Mark the rows to replace rows of older files with equal values in the columns `names`."""
    return rows.replace_schema_metadata({**(rows.schema.metadata or {}), REPLACES: msgpack.packb(list(names))})


def changed(names: Sequence[str], gone: Sequence[Sequence[pa.Array]], there: Iterable[Batch], chunk: int) -> Iterator[Batch]:
    """Yield the chunks of a delta: those that delete the keys `gone` (see `removed`), and those of `there`, which replace older
    rows.
    """
    return chain(removed(names, gone, chunk), (Batch(replacing(batch.rows, names)) for batch in there))


def removed(names: Sequence[str], keys: Sequence[Sequence[pa.Array]], chunk: int) -> Iterator[Batch]:
    """Yield chunks that delete these keys, pieces of the key columns `names`; `chunk` keys at a time."""
    if not keys:
        return
    rows = Batch.concat([Batch(pa.RecordBatch.from_arrays(list(columns), names=list(names))) for columns in keys]).rows
    for first in range(0, rows.num_rows, chunk):
        yield Batch(replacing(rows.slice(first, chunk), names))


def resolved(files: Iterable[Iterable[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield the state of a chain: the rows of `files`, the newest first, that no newer file replaces.

    Also yields the chunks without rows, which tell the columns. Holds the keys of all files but the last.
    """
    hidden: dict[tuple[str, ...], _Keys] = {}
    for chunks in files:
        replaced: list[tuple[tuple[str, ...], list[pa.Array]]] = []
        for chunk in chunks:
            names = _replaced(chunk)
            if names:
                replaced.append((names, [chunk.column(name) for name in names]))
            if len(names) < chunk.num_columns:
                rows = _visible(chunk, hidden)
                if rows.num_rows or not chunk.num_rows:
                    yield rows.replace_schema_metadata({k: v for k, v in (rows.schema.metadata or {}).items() if k != REPLACES})
        for names, columns in replaced:
            hidden.setdefault(names, _Keys()).add(columns)


def _replaced(chunk: pa.RecordBatch) -> tuple[str, ...]:
    written = (chunk.schema.metadata or {}).get(REPLACES)
    return () if written is None else tuple(msgpack.unpackb(written))


def _visible(chunk: pa.RecordBatch, hidden: dict[tuple[str, ...], _Keys]) -> pa.RecordBatch:
    for names, keys in hidden.items():
        if not set(names).issubset(chunk.schema.names):
            continue
        there = keys.among([chunk.column(name) for name in names])
        if there.any():
            chunk = chunk.filter(pa.array(~there))
    return chunk


class _Keys:
    """A set of keys: their hashes find candidates, their bytes decide."""

    def __init__(self) -> None:
        self._types = KeyTypes("a checkpoint's state")
        self._codec = KeyCodec(self._types)
        self._packed: set[bytes] = set()
        self._hashes = np.zeros(0, np.uint64)
        self._new: list[npt.NDArray[np.uint64]] = []

    def add(self, columns: list[pa.Array]) -> None:
        self._types.learn(columns)
        self._packed.update(self._codec.pack(columns))
        self._new.append(_hashes(columns))

    def among(self, columns: list[pa.Array]) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows whose keys are in the set, shape (rows,)."""
        if self._new:
            self._hashes, self._new = np.sort(np.concatenate([self._hashes, *self._new])), []
        hashes = _hashes(columns)
        if not len(self._hashes):
            return np.zeros(len(hashes), np.bool_)
        places = np.searchsorted(self._hashes, hashes)
        places[places == len(self._hashes)] = 0
        found: npt.NDArray[np.bool_] = self._hashes[places] == hashes
        candidates = np.flatnonzero(found)
        if len(candidates):
            self._types.learn(columns)
            where = pa.array(candidates)
            found[candidates] = [key in self._packed for key in self._codec.pack([column.take(where) for column in columns])]
        return found


def _hashes(columns: list[pa.Array]) -> npt.NDArray[np.uint64]:
    return key_hashes(columns, "a checkpoint's state")
