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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import msgpack
import pyarrow as pa

from ...state.files import CHUNK_BYTES, CHUNK_ROWS
from ...state.slots import Mask
from ..batch import Batch
from ..keys.slots import KeySlots
from .saved_rows import alike

REPLACES = b"evenflow.replaces"
"""Schema metadata of a chunk: the names of the columns that make the keys that it replaces, as a msgpack array."""

WHOSE = "a checkpoint's state"
"""The owner of the keys, in errors."""


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
    for chunk, hidden in marked(files):
        yield chunk if hidden is None else chunk.filter(pa.array(~hidden))


def marked(files: Iterable[Iterable[pa.RecordBatch]]) -> Iterator[tuple[pa.RecordBatch, Mask | None]]:
    """Yield the chunks of `resolved` unfiltered, each with a mask of the rows that it leaves out, shape (rows,); None for none."""
    known: dict[tuple[str, ...], KeySlots] = {}
    for chunks in files:
        replaced: list[tuple[tuple[str, ...], list[pa.Array]]] = []
        for chunk in gathered(chunks):
            names = _replaced(chunk)
            if names:
                replaced.append((names, [chunk.column(name) for name in names]))
            if len(names) < chunk.num_columns:
                hidden = _hidden(chunk, known)
                if hidden is None or not hidden.all():
                    metadata = {k: v for k, v in (chunk.schema.metadata or {}).items() if k != REPLACES}
                    yield chunk.replace_schema_metadata(metadata), hidden
        for names, columns in replaced:
            known.setdefault(names, KeySlots(WHOSE, names)).of(columns)


def gathered(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of chunks, consecutive small ones with equal schemas together; large ones are not copied."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for chunk in chunks:
        if held and (rows + chunk.num_rows > CHUNK_ROWS or size + chunk.nbytes > CHUNK_BYTES or not alike(chunk, held[-1])):
            yield _together(held)
            rows = size = 0
        held.append(chunk)
        rows, size = rows + chunk.num_rows, size + chunk.nbytes
    if held:
        yield _together(held)


def _together(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of all chunks, and give up the chunks."""
    chunk = held[0] if len(held) == 1 else pa.concat_batches(held)
    held.clear()
    return chunk


def _replaced(chunk: pa.RecordBatch) -> tuple[str, ...]:
    written = (chunk.schema.metadata or {}).get(REPLACES)
    return () if written is None else tuple(msgpack.unpackb(written))


def _hidden(chunk: pa.RecordBatch, known: Mapping[tuple[str, ...], KeySlots]) -> Mask | None:
    found: Mask | None = None
    for names, keys in known.items():
        if set(names).issubset(chunk.schema.names):
            columns = [chunk.column(name) for name in names]
            keys.learn(columns)
            there = keys.places(columns) >= 0
            found = there if found is None else found | there
    return found if found is not None and found.any() else None
