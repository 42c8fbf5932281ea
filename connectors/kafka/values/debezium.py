r"""The decoder of Debezium's change events to the rows of a table and its deleted keys.

An event's `after` is the row from now on; `before` is only asked for the key of a deleted row. So tables that don't send `before`
(PostgreSQL's REPLICA IDENTITY) work too. A record without a value is a deletion: compaction may have removed the event before it.

>>> from .debezium_json import JsonEvents
>>> values = DebeziumValues(pa.schema({"id": pa.int64(), "city": pa.string()}), ("id",), JsonEvents())
>>> created = b'{"before": null, "after": {"id": 7, "city": "Oslo"}, "op": "c"}'
>>> values.decode([(b'{"id": 7}', created), (b'{"id": 7}', None)])[0].to_pylist()
[{'id': 7, 'city': 'Oslo', '__deleted': False}, {'id': 7, 'city': None, '__deleted': True}]
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....engine.table_changes import DELETED, RESERVED
from .change_events import EventReader, converted
from .decoding import Decoder, UndecodableError, Values

if TYPE_CHECKING:
    from confluent_kafka import Message

KeyedValues: TypeAlias = Sequence[tuple[bytes | None, bytes | None]]
"""The key and the value of each record."""

UPSERTS = pa.array(["c", "u", "r"])
"""The operations that leave a row: it was created, updated, or read for a snapshot."""

UNSENT = b"__debezium_unavailable_value"
"""The bytes that stand for a large value that has not changed, which PostgreSQL doesn't send."""

_UNSENT_TEXTS = pa.array([UNSENT.decode(), base64.b64encode(UNSENT).decode()])
"""The same as a text, and as bytes in JSON."""

Mask: TypeAlias = npt.NDArray[np.bool_]


class DebeziumValues(Decoder):
    """A decoder of change events to the columns of the table and a column `__deleted`. `columns`: None until they are known."""

    def __init__(self, columns: pa.Schema | None, key: tuple[str, ...], reader: EventReader) -> None:
        self._columns, self._key = columns, key
        self._reader = reader if columns is None else reader.reading(columns, key)

    @property
    def schema(self) -> pa.Schema | None:
        return None if self._columns is None else self._columns.append(pa.field(DELETED, pa.bool_()))

    def contents(self, records: Sequence[Message]) -> KeyedValues:
        return [(record.key(), record.value()) for record in records]

    def decode(self, values: KeyedValues) -> tuple[pa.RecordBatch, None]:
        schema = self.schema
        assert schema is not None
        events = self._reader.events([value for _, value in values])
        op, after, tombstone = events.op, events.after, np.array([value is None for _, value in values], np.bool_)
        there = _bools(pc.fill_null(pc.is_in(op, value_set=UPSERTS), False))
        gone = _bools(pc.fill_null(pc.equal(op, "d"), False)) | tombstone
        self._check(op, after, there, gone)
        columns = {name: pc.struct_field(after, name) for name in self._columns.names}  # type: ignore[union-attr]  # as `schema`
        if gone.any():
            places = np.flatnonzero(gone)
            deleted = self._deleted_keys(events.before.take(pa.array(places)), [values[place][0] for place in places.tolist()])
            columns = {name: _replaced(column, places, deleted.get(name)) for name, column in columns.items()}
        for name in self._key:
            if columns[name].null_count:
                raise UndecodableError(f"it has no `{name}`, which is in key=; give the columns of the table's primary key in key=")
        arrays = [converted(columns[field.name], field) for field in schema if field.name != DELETED]
        return pa.RecordBatch.from_arrays([*arrays, pa.array(gone)], schema=schema), None

    def inferred(self, sample: Callable[[], Values]) -> Decoder:
        if self._columns is not None:
            return self
        columns, reader = self._reader.inferred(sample)
        missing = next((name for name in self._key if name not in columns.names), None)
        if missing is not None:
            raise UndecodableError(f"the events have no column `{missing}`, which is in key=; they have {', '.join(columns.names)}")
        taken = next((name for name in columns.names if name.startswith(RESERVED)), None)
        if taken is not None:
            raise UndecodableError(f"the events have the column `{taken}`: names that begin with {RESERVED} are taken")
        return DebeziumValues(columns, self._key, reader)

    def _check(self, op: pa.Array, after: pa.Array, there: Mask, gone: Mask) -> None:
        """Raise UndecodableError for an event that is neither a row nor a deletion."""
        other = ~(there | gone)
        if other.any():
            raise UndecodableError(_no_change(op[int(np.flatnonzero(other)[0])].as_py()))
        if (there & ~_bools(after.is_valid())).any():
            raise UndecodableError("its `after` is null, and its `op` says that there is a row")
        for field in after.type:
            if _unsent(pc.struct_field(after, field.name)):
                raise UndecodableError(
                    f"PostgreSQL didn't send `{field.name}`, a large value that has not changed: say ALTER TABLE ... REPLICA IDENTITY "
                    "FULL, or name the columns that you need in schema= without it"
                )

    def _deleted_keys(self, before: pa.Array, keys: Values) -> dict[str, pa.Array]:
        """Return the key columns of deleted rows, from the records' keys where `before` doesn't have them."""
        found = {name: pc.struct_field(before, name) for name in self._key}
        lacking = np.logical_or.reduce([~_bools(column.is_valid()) for column in found.values()])
        if not lacking.any():
            return found
        places = np.flatnonzero(lacking)
        if any(keys[place] is None for place in places.tolist()):
            raise UndecodableError("it deletes a row, and has neither a key nor a `before` that says which one")
        try:
            own = self._reader.keys([keys[place] for place in places.tolist()])
        except (UndecodableError, pa.ArrowException) as error:
            raise UndecodableError(f"it deletes a row, and its key can't be decoded: {error}") from error
        return {name: _replaced(column, places, pc.struct_field(own, name)) for name, column in found.items()}


def _unsent(column: pa.Array) -> bool:
    """Return True if PostgreSQL didn't send one of these values."""
    if pa.types.is_string(column.type):
        return bool(pc.any(pc.is_in(column, value_set=_UNSENT_TEXTS)).as_py())
    return pa.types.is_binary(column.type) and bool(pc.any(pc.equal(column, UNSENT)).as_py())


def _replaced(column: pa.Array, places: npt.NDArray[np.intp], values: pa.Array | None) -> pa.Array:
    """Return the column with `values` in these places, None for nulls."""
    values = pa.nulls(len(places), column.type) if values is None else values
    order = np.arange(len(column))
    order[places] = len(column) + np.arange(len(places))
    return pa.concat_arrays([column, values]).take(pa.array(order))


def _bools(array: Any) -> Mask:
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask


def _no_change(op: str | None) -> str:
    if op is None:
        return 'it has no `op`, so it is no change event of Debezium; rows without the envelope are format="json"'
    if op == "t":
        return (
            "op=t: the table was truncated, which no key says; let the connector skip it (skipped.operations), and delete the rows instead"
        )
    return f"op={op!r:.50} is none of c, u, r (a row) and d (a deletion)"
