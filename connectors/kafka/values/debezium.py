r"""The decoder of Debezium's change events in JSON, with and without the wrapper of Kafka Connect's schemas.

An event's `after` is the row from now on; `before` is only asked for the key of a deleted row. So tables that don't send `before`
(PostgreSQL's REPLICA IDENTITY) work too. A record without a value is a deletion: compaction may have removed the event before it.

>>> values = DebeziumValues(pa.schema({"id": pa.int64(), "city": pa.string()}), ("id",))
>>> created = b'{"before": null, "after": {"id": 7, "city": "Oslo"}, "op": "c"}'
>>> values.decode([(b'{"id": 7}', created), (b'{"id": 7}', None)])[0].to_pylist()
[{'id': 7, 'city': 'Oslo', '__deleted': False}, {'id': 7, 'city': None, '__deleted': True}]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....engine.table_changes import DELETED
from .decoding import Decoder, JsonValues, UndecodableError, Values
from .envelope_schema import EventColumns, columns_of_event

if TYPE_CHECKING:
    from confluent_kafka import Message

KeyedValues: TypeAlias = Sequence[tuple[bytes | None, bytes | None]]
"""The key and the value of each record."""

UPSERTS = pa.array(["c", "u", "r"])
"""The operations that leave a row: it was created, updated, or read for a snapshot."""

UNSENT = "__debezium_unavailable_value"
"""The text that stands for a large value that has not changed, which PostgreSQL doesn't send."""

Mask: TypeAlias = npt.NDArray[np.bool_]


class DebeziumValues(Decoder):
    """A decoder of change events to the columns of the table and a column `__deleted`. `columns`: None until they are known.

    `read`: the types in which JSON has the columns; None if these are those of `columns`.
    """

    def __init__(self, columns: pa.Schema | None, key: tuple[str, ...], read: pa.Schema | None = None) -> None:
        self._columns, self._key = columns, key
        if columns is None:
            return
        read = columns if read is None else read
        row, own = pa.struct(list(read)), pa.struct([read.field(name) for name in key])
        event = [pa.field("op", pa.string()), pa.field("before", own), pa.field("after", row)]
        self._events = JsonValues(pa.schema([pa.field("payload", pa.struct(event)), *event]))
        self._keys = JsonValues(pa.schema([pa.field("payload", own), *own]))

    @property
    def schema(self) -> pa.Schema | None:
        return None if self._columns is None else self._columns.append(pa.field(DELETED, pa.bool_()))

    def contents(self, records: Sequence[Message]) -> KeyedValues:
        return [(record.key(), record.value()) for record in records]

    def decode(self, values: KeyedValues) -> tuple[pa.RecordBatch, None]:
        schema = self.schema
        assert schema is not None
        events, _ = self._events.decode([value for _, value in values])
        payload, tombstone = events.column("payload"), np.array([value is None for _, value in values], np.bool_)
        op, before, after = (_either(payload, events.column(name), name) for name in ("op", "before", "after"))
        there = _bools(pc.fill_null(pc.is_in(op, value_set=UPSERTS), False))
        gone = _bools(pc.fill_null(pc.equal(op, "d"), False)) | tombstone
        self._check(op, after, there, gone)
        columns = {name: pc.struct_field(after, name) for name in self._columns.names}  # type: ignore[union-attr]  # as `schema`
        if gone.any():
            places = np.flatnonzero(gone)
            deleted = self._deleted_keys(before.take(pa.array(places)), [values[place][0] for place in places.tolist()])
            columns = {name: _replaced(column, places, deleted.get(name)) for name, column in columns.items()}
        for name in self._key:
            if columns[name].null_count:
                raise UndecodableError(f"it has no `{name}`, which is in key=; give the columns of the table's primary key in key=")
        arrays = [_converted(columns[field.name], field) for field in schema if field.name != DELETED]
        return pa.RecordBatch.from_arrays([*arrays, pa.array(gone)], schema=schema), None

    def inferred(self, sample: Callable[[], Values]) -> Decoder:
        if self._columns is not None:
            return self
        found: EventColumns | None = None
        for value in reversed(sample()):
            found = None if value is None else columns_of_event(value)
            if found is not None:
                break
        if found is None:
            raise UndecodableError("no event has a schema (the converter's schemas.enable)")
        missing = next((name for name in self._key if name not in found.columns.names), None)
        if missing is not None:
            raise UndecodableError(f"the events have no column `{missing}`, which is in key=; they have {', '.join(found.columns.names)}")
        return DebeziumValues(found.columns, self._key, found.read)

    def _check(self, op: pa.Array, after: pa.Array, there: Mask, gone: Mask) -> None:
        """Raise UndecodableError for an event that is neither a row nor a deletion."""
        other = ~(there | gone)
        if other.any():
            raise UndecodableError(_no_change(op[int(np.flatnonzero(other)[0])].as_py()))
        if (there & ~_bools(after.is_valid())).any():
            raise UndecodableError("its `after` is null, and its `op` says that there is a row")
        for field in after.type:
            if pa.types.is_string(field.type) and pc.any(pc.equal(pc.struct_field(after, field.name), UNSENT)).as_py():
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
            rows, _ = self._keys.decode([keys[place] for place in places.tolist()])
        except (UndecodableError, pa.ArrowException) as error:
            raise UndecodableError(f"it deletes a row, and its key can't be decoded: {error}") from error
        payload = rows.column("payload")
        return {name: _replaced(column, places, _either(payload, rows.column(name), name)) for name, column in found.items()}


def _either(payload: pa.Array, outside: pa.Array, name: str) -> pa.Array:
    """Return a field of the payload of events that have the wrapper, and of the others themselves."""
    if payload.null_count == len(payload):
        return outside
    inside = pc.struct_field(payload, name)
    return pc.if_else(payload.is_valid(), inside, outside) if payload.null_count else inside


def _replaced(column: pa.Array, places: npt.NDArray[np.intp], values: pa.Array | None) -> pa.Array:
    """Return the column with `values` in these places, None for nulls."""
    values = pa.nulls(len(places), column.type) if values is None else values
    order = np.arange(len(column))
    order[places] = len(column) + np.arange(len(places))
    return pa.concat_arrays([column, values]).take(pa.array(order))


def _converted(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return column if column.type == field.type else column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise UndecodableError(f"column `{field.name}`: {error}; name its type in schema=") from error


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
