"""A worker's copy of the rows of a broadcast stream: the newest row of each key.

Every worker has the same rows at the same place of the stream. A worker that joins has none: it ignores the stream until a worker
that hands keys over gives it a copy. In a checkpoint each worker's copy is whole, because a restore may read the files of any.

>>> copy = BroadcastCopy(("name",), "process")
>>> copy.apply(tagged_rows(pa.record_batch({"name": ["a", "b", "a"], "limit": [1, 2, 3]}), None))
>>> copy.apply(tagged_rows(pa.record_batch({"name": ["b"], "limit": [2]}), pa.array([True])))
>>> {name: row["limit"] for name, row in copy.rows.items()}
{'a': 3}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from ...batch import Batch
from ...broadcast_rows import DELETES, ROW, plain_rows, tagged_rows
from ...keys.encoding import key_column, key_values
from ...snapshots.chain import replacing
from ...types.python_values import array_of

PART, PLACE = "__copy", "__place"
"""Columns of a chunk: a constant, the key that a newer copy in a chain replaces, and the place of a row among the others."""


class BroadcastCopy:
    """A copy. `rows`: the newest row of each key, in the order in which the keys came; `here`: false while it is to be given."""

    def __init__(self, keys: tuple[str, ...], operator: str) -> None:
        self._keys, self._operator = keys, operator
        self._rows: dict[Any, Mapping[str, Any]] = {}
        self._kept: dict[Any, tuple[int, pa.Schema]] = {}
        """The place of each row, and its schema."""
        self._places = 0
        self.rows: Mapping[Any, Mapping[str, Any]] = MappingProxyType(self._rows)
        self.here = True
        self.changed = False
        """True if the copy has changed since this was last set to false."""

    def __len__(self) -> int:
        return len(self._rows)

    def apply(self, tagged: pa.RecordBatch) -> None:
        """Apply rows of the stream, one after the other."""
        if not self.here:
            return
        rows = plain_rows(tagged)
        deletes = tagged.column(DELETES).to_pylist() if DELETES in tagged.schema.names else repeat(False)
        for key, row, deleted in zip(self._keys_of(rows), Batch(rows).to_rows(), deletes, strict=False):
            if deleted:
                self._rows.pop(key, None)
                self._kept.pop(key, None)
            else:
                place = self._kept[key][0] if key in self._kept else self._places
                self._places = max(self._places, place + 1)
                self._rows[key], self._kept[key] = MappingProxyType(row), (place, rows.schema)
        self.changed = self.changed or bool(tagged.num_rows)

    def install(self, chunk: pa.RecordBatch) -> None:
        """Add a chunk of another copy as of the same place of the stream, or of a checkpoint."""
        self.here = self.changed = True
        if not chunk.num_rows:
            return
        rows = plain_rows(chunk)
        for key, row, place in zip(self._keys_of(rows), Batch(rows).to_rows(), chunk.column(PLACE).to_pylist(), strict=True):
            self._rows[key], self._kept[key] = MappingProxyType(row), (place, rows.schema)
            self._places = max(self._places, place + 1)
        ordered = sorted(self._rows.items(), key=lambda item: self._kept[item[0]][0])
        self._rows.clear()
        self._rows.update(ordered)

    def chunks(self) -> list[Batch]:
        """Return the copy, a chunk for each schema; a chunk without rows stands for a copy without any. Nothing if it isn't here."""
        if not self.here:
            return []
        by_schema: dict[pa.Schema, list[Any]] = {}
        for key, (_, schema) in self._kept.items():
            by_schema.setdefault(schema, []).append(key)
        return [Batch(self._chunk(keys, schema)) for schema, keys in by_schema.items()] or [Batch(self._chunk([], pa.schema([])))]

    def replaced(self) -> Iterator[Batch]:
        """Yield the copy as chunks that replace older ones of a chain."""
        there = self.chunks()
        if there:
            yield Batch(replacing(pa.record_batch({PART: pa.array([0])}), [PART]))
            yield from there

    def _chunk(self, keys: list[Any], schema: pa.Schema) -> pa.RecordBatch:
        columns = [array_of([self._rows[key][field.name] for key in keys], field.type) for field in schema]
        tagged = tagged_rows(pa.RecordBatch.from_arrays(columns, schema=schema), None)
        tagged = tagged if columns else pa.record_batch({ROW: pa.nulls(0, pa.struct([]))})
        places = pa.array([self._kept[key][0] for key in keys], pa.int64())
        return tagged.append_column(PART, pa.array([0] * len(keys), pa.int64())).append_column(PLACE, places)

    def _keys_of(self, rows: pa.RecordBatch) -> list[Any]:
        return key_values([key_column(rows, key, self._operator) for key in self._keys])
