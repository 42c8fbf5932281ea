"""The columns of a join's rows in a state backend: a value of packed bytes per row, under the number assigned on arrival.

The look-up columns of a join (hashes, times, and the numbers) stay in memory; values are read for the rows that matched. Rows are
never changed, so a snapshot is a list of numbers. Invariant: a forgotten row is deleted only when no reader of an earlier state
is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....state.backends.base import StateBackend
from ....state.errors import StateBackendError
from ...joins.row_codec import RowCodec
from ...joins.rows import BlockRows, Mask, MemoryRows, Reached, RowIndices
from ...types.exact import common, widened

RowNumbers = npt.NDArray[np.uint64]

AT_ONCE = 4_096
"""The least number of forgotten rows that are deleted at a time."""


class Reading:
    """A token of a reader: while it exists, no row is deleted."""


class RowPlace:
    """The storage of a join's rows: a backend, or memory if that is None."""

    def __init__(self, backend: StateBackend | None, groups: int) -> None:
        self._backend = backend
        self._stores = [] if backend is None else [RowStore(backend, group) for group in range(groups)]

    def keep(self, group: int, rows: BlockRows) -> BlockRows:
        """Store the rows, and return them as stored."""
        return self._stores[group].keep(rows) if self._stores else rows

    def reading(self) -> Sequence[Reading]:
        """Return tokens; while they are referenced, no row is deleted."""
        return [store.reading() for store in self._stores]

    @property
    def nbytes(self) -> int:
        """Return the bytes in the backend."""
        return 0 if self._backend is None else self._backend.nbytes()

    def close(self) -> None:
        """Delete everything."""
        if self._backend is not None:
            self._backend.close()


class RowStore:
    """The rows of one side, in one group of the backend."""

    def __init__(self, backend: StateBackend, group: int) -> None:
        self._backend, self._group = backend, group
        self._next = 0
        self._codecs: list[RowCodec] = []
        self._since: list[int] = []
        """The number of the first row that each codec packed."""
        self._readers: WeakSet[Reading] = WeakSet()
        self._forgotten: list[RowNumbers] = []
        self._nulls: set[str] = set()

    def keep(self, rows: BlockRows) -> BlockRows:
        """Write rows; return a reference to them."""
        if isinstance(rows, BackendRows):
            return rows
        table = rows.read()
        if not self._codecs or not self._codecs[-1].schema.equals(table.schema):
            self._codecs.append(RowCodec(table.schema))
            self._since.append(self._next)
        self._nulls.update(name for name, column in zip(table.schema.names, table.columns, strict=True) if column.null_count)
        numbers = np.arange(self._next, self._next + len(rows), dtype=np.uint64)
        self._next += len(rows)
        self._backend.put_many([self._group] * len(rows), _keys(numbers), self._codecs[-1].pack(table))
        self._delete()
        return BackendRows(self, numbers, table.schema)

    def read(self, numbers: RowNumbers, schema: pa.Schema) -> pa.RecordBatch:
        """Return the rows with these numbers, in their order. Raises StateBackendError for a missing row."""
        there, rows = self.kept(numbers, schema)
        if not there.all():
            raise StateBackendError(f"{np.count_nonzero(~there)} of {len(there)} rows of a join are gone from the state backend")
        return rows

    def kept(self, numbers: RowNumbers, schema: pa.Schema) -> tuple[Mask, pa.RecordBatch]:
        """Return a mask of the numbers whose rows exist, and these rows, with the columns of `schema`."""
        values = self._backend.get_many([self._group] * len(numbers), _keys(numbers))
        there = np.fromiter((value is not None for value in values), np.bool_, len(values))
        packed = [value for value in values if value is not None]
        codecs = np.searchsorted(self._since, numbers[there], "right") - 1
        used = np.unique(codecs).tolist()
        if not used:
            return there, no_rows(schema)
        parts = [MemoryRows(widened(self._unpacked(codec, packed, codecs), schema)) for codec in used]
        if len(parts) == 1:
            return there, parts[0].read()
        order = np.argsort(np.argsort(codecs, kind="stable"))
        return there, parts[0].with_others(parts[1:]).take(order).read()

    def forget(self, numbers: RowNumbers) -> None:
        """Forget the rows with these numbers."""
        self._forgotten.append(numbers)
        if sum(map(len, self._forgotten)) >= AT_ONCE:
            self._delete()

    def reading(self) -> Reading:
        """Return a token; while it is referenced, no row is deleted."""
        reading = Reading()
        self._readers.add(reading)
        return reading

    def has_nulls(self, column: str) -> bool:
        """Return True if the column has had a null."""
        return column in self._nulls

    def _unpacked(self, codec: int, packed: list[bytes], codecs: npt.NDArray[np.integer]) -> pa.RecordBatch:
        mine = codecs == codec
        return self._codecs[codec].unpack(packed if mine.all() else [packed[place] for place in np.flatnonzero(mine)])

    def _delete(self) -> None:
        if self._forgotten and not self._readers:
            gone, self._forgotten = np.concatenate(self._forgotten), []
            self._backend.delete_many([self._group] * len(gone), _keys(np.sort(gone)))


class BackendRows(BlockRows):
    """Rows in a `RowStore`: their numbers."""

    __slots__ = ("_store", "numbers", "schema")

    def __init__(self, store: RowStore, numbers: RowNumbers, schema: pa.Schema) -> None:
        self._store, self.numbers, self.schema = store, numbers, schema

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, places: RowIndices) -> BackendRows:
        return BackendRows(self._store, self.numbers[places], self.schema)

    def filter(self, mask: Mask) -> BackendRows:
        return BackendRows(self._store, self.numbers[mask], self.schema)

    def slice(self, start: int, length: int) -> BackendRows:
        return BackendRows(self._store, self.numbers[start : start + length], self.schema)

    def with_others(self, others: Sequence[BlockRows]) -> BackendRows:
        parts, schema = [self.numbers], self.schema
        for other in others:
            assert isinstance(other, BackendRows)
            parts.append(other.numbers)
            schema = common([schema, other.schema])
        return BackendRows(self._store, np.concatenate(parts), schema)

    def reached(self, places: RowIndices) -> Reached:
        """Read each requested row once, also if it is requested several times."""
        distinct, where = np.unique(places, return_inverse=True)
        return Reached((self._store.read(self.numbers[distinct], self.schema),), where)

    def read(self) -> pa.RecordBatch:
        return self._store.read(self.numbers, self.schema)

    def kept(self) -> tuple[Mask, pa.RecordBatch]:
        return self._store.kept(self.numbers, self.schema)

    def has_nulls(self, column: str) -> bool:
        return self._store.has_nulls(column)

    def forget(self, mask: Mask) -> None:
        self._store.forget(self.numbers[mask])

    @property
    def nbytes(self) -> int:
        return self.numbers.nbytes


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return a record batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _keys(numbers: RowNumbers) -> list[bytes]:
    """Return keys in the order of the numbers: new rows are behind all others."""
    return numbers.astype(">u8").view("V8").tolist()  # type: ignore[no-any-return]
