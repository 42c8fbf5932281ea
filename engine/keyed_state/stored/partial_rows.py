"""Encoding of partial aggregates as bytes for a backend, a row for each key: fixed-width parts as in memory, then the rest as
msgpack.

Invariant: a row names its binding. So rows stay unchanged when a type becomes known or widens, and are converted when they are
next read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from ....state.errors import StateBackendError
from ....state.packing import unpack_value
from ...aggregates.base import Parts
from ...aggregates.binding import Binding
from ...aggregates.partial_aggregates import PartialAggregates, PartialAggregator
from ...aggregates.ragged import replaced
from ...batch import Batch
from ...keys.codec import KeyCodec
from ...keys.encoding import KeyTypes
from .ragged_bytes import from_stored, stored, stored_types
from .stored_rows import StoredRows

BINDINGS = b"evenflow.bindings"
"""The schema metadata of partial aggregates sent to another worker: the bindings of the sender's rows."""


class PartialRows:
    """The codec of one operator's rows. `learned` must get another worker's bindings before its rows are read."""

    def __init__(self, aggregator: PartialAggregator) -> None:
        self._aggregator = aggregator
        self._layouts: dict[int, _Layout] = {}
        self._newest: _Layout | None = None

    def pack(self, partial: PartialAggregates) -> list[bytes]:
        """Return the rows of partial aggregates of the newest binding."""
        return self._layout().pack(partial)

    def unpack(self, keys: Sequence[pa.Array], rows: Sequence[bytes], binding: Binding | None = None) -> PartialAggregates:
        """Return the partial aggregates of rows; the inverse of `pack`.

        They have the types of `binding`, which holds those of all rows, or of the newest binding.
        """
        wanted = self._layout() if binding is None else self._of(binding)
        found = wanted.unpack(rows)
        if found is None:
            found = self._of_several_bindings(rows, wanted)
        return PartialAggregates(tuple(keys), *found)

    def merged(self, partial: PartialAggregates, found: Sequence[bytes | None]) -> PartialAggregates:
        """Merge partial aggregates, with every key once, with the rows found for their keys."""
        there = [place for place, row in enumerate(found) if row is not None]
        if not there:
            return partial
        before = self.unpack((), [row for row in found if row is not None])
        accumulators = self._aggregator.accumulators
        if len(there) == len(partial):
            pairs = zip(accumulators, before.parts, partial.parts, strict=True)
            return PartialAggregates(partial.keys, before.rows + partial.rows, tuple(a.merge(old, new) for a, old, new in pairs))
        where = np.array(there, np.int64)
        rows, parts = partial.rows.copy(), []
        rows[where] += before.rows
        for accumulator, old, new in zip(accumulators, before.parts, partial.parts, strict=True):
            both = accumulator.merge(old, tuple(column[where] for column in new))
            parts.append(tuple(replaced(column, where, values) for column, values in zip(new, both, strict=True)))
        return PartialAggregates(partial.keys, rows, tuple(parts))

    def sent(self, partial: PartialAggregates, panes: npt.NDArray[np.int64] | None) -> Batch:
        """Return partial aggregates for another worker, which may also find rows of older bindings in the backend."""
        batch = self._aggregator.to_batch(partial, None, panes)
        return Batch(batch.rows.replace_schema_metadata({**batch.rows.schema.metadata, BINDINGS: self.about()}))

    def about(self) -> bytes:
        """Return the bindings that another worker needs to read these rows."""
        packed: bytes = msgpack.packb([layout.binding.written for layout in self._layouts.values()])
        return packed

    def learned(self, state: Batch, stored: StoredRows) -> bool:
        """Learn the bindings from another worker's batch. Return True if the batch only names rows.

        Such rows changed owners without being sent.
        """
        about = stored.take_over(state)
        known = about if about is not None else (state.rows.schema.metadata or {}).get(BINDINGS)
        if known is not None:
            self.learn(known)
        return about is not None

    def learn(self, about: bytes) -> None:
        """Learn the result of another worker's `about`; the newest binding holds all of it."""
        for written in unpack_value(about):
            binding = self._aggregator.binding_of(written)
            self._aggregator.bind(binding.input)
            self._of(binding)

    def _layout(self) -> _Layout:
        binding = self._aggregator.binding
        if binding is None:
            raise ValueError("an aggregator that saw no batch has no rows")
        if self._newest is None or self._newest.binding is not binding:
            self._newest = self._of(binding)
        return self._newest

    def _of(self, binding: Binding) -> _Layout:
        layout = self._layouts.get(_number(binding))
        if layout is None:
            layout = self._layouts[_number(binding)] = _Layout(binding)
        return layout

    def _of_several_bindings(self, rows: Sequence[bytes], wanted: _Layout) -> tuple[npt.NDArray[np.int64], tuple[Parts, ...]]:
        numbers = np.array([int.from_bytes(row[:8], "little") for row in rows], np.uint64)
        counts = np.zeros(len(rows), np.int64)
        columns = [list(accumulator.empty(len(rows))) for accumulator in wanted.binding.accumulators]
        for number in np.unique(numbers).tolist():
            layout, where = self._layouts.get(number), np.flatnonzero(numbers == number)
            found = None if layout is None else layout.unpack([rows[place] for place in where.tolist()])
            if layout is None or found is None:
                problem = "its state holds a row that it has not written; does another job use the same place under the same name?"
                raise StateBackendError(f"operator `{self._aggregator.operator}`: {problem}")
            counts[where] = found[0]
            carried = found[1] if layout is wanted else wanted.binding.carried(found[1], layout.binding)
            for part, values in zip(columns, carried, strict=True):
                part[:] = [replaced(column, where, value) for column, value in zip(part, values, strict=True)]
        return counts, tuple(map(tuple, columns))


class _Layout:
    """The layout of one binding's rows: the binding's number, the count of records, the parts."""

    def __init__(self, binding: Binding) -> None:
        self.binding, self.number = binding, _number(binding)
        empty = [accumulator.empty(0) for accumulator in binding.accumulators]
        self._fixed = [not any(part.dtype.hasobject for part in parts) for parts in empty]
        fields: list[tuple[str, Any]] = [("binding", "<u8"), ("rows", "<i8")]
        for place, (parts, fixed) in enumerate(zip(empty, self._fixed, strict=True)):
            fields += [(f"{place}.{i}", part.dtype) for i, part in enumerate(parts) if fixed]
        self._dtype = np.dtype(fields)
        kinds = [kind for a, fixed in zip(binding.accumulators, self._fixed, strict=True) if not fixed for kind in a.part_types]
        others = [column for kind in kinds for column in stored_types(kind)]
        self._codec: KeyCodec | None = None
        if others:
            types = KeyTypes("an aggregate's state")
            types.learn([pa.nulls(0, kind) for kind in others])
            self._codec = KeyCodec(types)

    def pack(self, partial: PartialAggregates) -> list[bytes]:
        table = np.empty(len(partial), self._dtype)
        table["binding"], table["rows"] = self.number, partial.rows
        others: list[pa.Array] = []
        for place, (accumulator, parts) in enumerate(zip(self.binding.accumulators, partial.parts, strict=True)):
            if self._fixed[place]:
                for i, part in enumerate(parts):
                    table[f"{place}.{i}"] = part
            else:
                for column in accumulator.to_arrow(parts):
                    others += stored(column)
        rows: list[bytes] = table.view(f"V{self._dtype.itemsize}").tolist()
        if self._codec is None:
            return rows
        return [row + other for row, other in zip(rows, self._codec.pack(others), strict=True)]

    def unpack(self, rows: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], tuple[Parts, ...]] | None:
        """Return the counts and the parts; None if some rows are of another layout."""
        width = self._dtype.itemsize
        joined = b"".join(rows) if self._codec is None else b"".join([row[:width] for row in rows])
        if len(joined) != width * len(rows):
            return None
        table = np.frombuffer(joined, self._dtype)
        if (table["binding"] != self.number).any():
            return None
        others = [] if self._codec is None else self._codec.columns([row[width:] for row in rows])
        parts: list[Parts] = []
        for place, accumulator in enumerate(self.binding.accumulators):
            if self._fixed[place]:
                names = [name for name in self._dtype.names or () if name.startswith(f"{place}.")]
                parts.append(tuple(table[name].copy() for name in names))
            else:
                columns = []
                for kind in accumulator.part_types:
                    n = len(stored_types(kind))
                    columns.append(from_stored(others[:n], kind))
                    others = others[n:]
                parts.append(accumulator.from_arrow(columns))
        return table["rows"].copy(), tuple(parts)


def _number(binding: Binding) -> int:
    """Return a number for these types, the same in every worker."""
    return xxhash.xxh3_64_intdigest(binding.written)
