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
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from ...batch import Batch
from ...broadcast_rows import DELETES, ROW, plain_rows, plain_schema, tagged_rows
from ...keys.encoding import key_column, key_values
from ...snapshots.chain import replacing
from ...types.python_values import array_of

PART, PLACE = "__copy", "__place"
"""Columns of a chunk: a constant, the key that a newer copy in a chain replaces, and the place of a row among the others."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """The newest row of a key. `place`: its place among the rows; `deletes`: it has removed the key's row, and is kept for its version."""

    row: dict[str, Any]
    schema: pa.Schema
    place: int
    deletes: bool


class BroadcastCopy:
    """A copy. `rows`: the newest row of each key, in the order in which the keys came; `here`: false while it is to be given.

    `version`: the column whose highest value makes the newest row, None for the order of arrival.
    """

    def __init__(self, keys: tuple[str, ...], operator: str, version: str | None = None) -> None:
        self._keys, self._operator, self._version = keys, operator, version
        self._rows: dict[Any, Mapping[str, Any]] = {}
        self._kept: dict[Any, _Kept] = {}
        self._places = 0
        self.rows: Mapping[Any, Mapping[str, Any]] = MappingProxyType(self._rows)
        self.here = True
        self.changed = False
        """True if the copy has changed since this was last set to false."""

    def __len__(self) -> int:
        return len(self._kept)

    def apply(self, tagged: pa.RecordBatch) -> None:
        """Apply rows of the stream, one after the other."""
        if not self.here:
            return
        for key, row, deletes in self._each(tagged):
            before = self._kept.get(key)
            if before is not None and self._version is not None and row[self._version] < before.row[self._version]:
                continue
            if not deletes:
                place = self._places if before is None or before.deletes else before.place
                self._keep(key, _Kept(row, plain_schema(tagged), place, deletes=False))
            else:
                self._rows.pop(key, None)
                self._kept.pop(key, None)
                if self._version is not None:
                    self._keep(key, _Kept(row, plain_schema(tagged), 0, deletes=True))
        self.changed = self.changed or bool(tagged.num_rows)

    def install(self, chunk: pa.RecordBatch) -> None:
        """Add a chunk of another copy as of the same place of the stream, or of a checkpoint."""
        self.here = self.changed = True
        if not chunk.num_rows:
            return
        for (key, row, deletes), place in zip(self._each(chunk), chunk.column(PLACE).to_pylist(), strict=True):
            self._keep(key, _Kept(row, plain_schema(chunk), place, deletes))
        ordered = sorted(self._rows.items(), key=lambda item: self._kept[item[0]].place)
        self._rows.clear()
        self._rows.update(ordered)

    def chunks(self) -> list[Batch]:
        """Return the copy, a chunk for each schema; a chunk without rows stands for a copy without any. Nothing if it isn't here."""
        if not self.here:
            return []
        by_schema: dict[pa.Schema, list[_Kept]] = {}
        for kept in self._kept.values():
            by_schema.setdefault(kept.schema, []).append(kept)
        return [Batch(_chunk(kept, schema)) for schema, kept in by_schema.items()] or [Batch(_chunk([], pa.schema([])))]

    def replaced(self) -> Iterator[Batch]:
        """Yield the copy as chunks that replace older ones of a chain."""
        there = self.chunks()
        if there:
            yield Batch(replacing(pa.record_batch({PART: pa.array([0])}), [PART]))
            yield from there

    def _keep(self, key: Any, kept: _Kept) -> None:
        self._kept[key] = kept
        self._places = max(self._places, kept.place + 1)
        if not kept.deletes:
            self._rows[key] = MappingProxyType(kept.row)

    def _each(self, tagged: pa.RecordBatch) -> Iterator[tuple[Any, dict[str, Any], bool]]:
        """Yield the key of each row, the row, and whether it deletes that of its key."""
        rows = plain_rows(tagged)
        keys = key_values([key_column(rows, key, self._operator) for key in self._keys])
        deletes = tagged.column(DELETES).to_pylist() if DELETES in tagged.schema.names else [False] * tagged.num_rows
        return zip(keys, Batch(rows).to_rows(), deletes, strict=True)


def _chunk(kept: list[_Kept], schema: pa.Schema) -> pa.RecordBatch:
    columns = [array_of([each.row[field.name] for each in kept], field.type) for field in schema]
    tagged = tagged_rows(pa.RecordBatch.from_arrays(columns, schema=schema), pa.array([each.deletes for each in kept], pa.bool_()))
    tagged = tagged if columns else pa.record_batch({ROW: pa.nulls(0, pa.struct([])), DELETES: pa.nulls(0, pa.bool_())})
    places = pa.array([each.place for each in kept], pa.int64())
    return tagged.append_column(PART, pa.array([0] * len(kept), pa.int64())).append_column(PLACE, places)
