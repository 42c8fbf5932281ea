"""The common form of the two inputs of a join: key columns of the same names first, then the row itself as a struct column.

The struct's name tells the side. So both inputs are partitioned, moved, set aside and saved as one stream, and only the join
distinguishes them.

>>> batch = LEFT.tag(Batch(pa.record_batch({"id": [7], "name": ["Ann"]})), ("id",))
>>> batch.rows.to_pylist(), side_of(batch.rows.schema), LEFT.rows(batch.rows).to_pylist()
([{'__key0': 7, '__left': {'id': 7, 'name': 'Ann'}}], Side(column='__left', dealt='left'), [{'id': 7, 'name': 'Ann'}])
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types

from ..batch import Batch
from ..keys.encoding import key_column
from ..protocol.split_route import Dealt


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join.

    `column`: the name of the struct column with its rows; `dealt`: the side's name in routes of split keys.
    """

    column: str
    dealt: Dealt

    def tag(self, batch: Batch, keys: tuple[str, ...], operator: str = "join") -> Batch:
        """Convert a batch to the common form. Raises RecordError, naming `operator`, for a missing key column."""
        columns = [self.form_key(key_column(batch.rows, key, operator)) for key in keys]
        return batch.with_rows(self.form(columns, batch.rows))

    @staticmethod
    def form_key(column: pa.Array) -> pa.Array:
        """Return a key column in the type that both sides have in the common form."""
        return _common(column)

    def form(self, keys: list[pa.Array], rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows in the common form; `keys`: their key columns."""
        struct = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
        return pa.RecordBatch.from_arrays([*keys, struct], names=[*key_names(len(keys)), self.column])

    def rows(self, tagged: pa.RecordBatch) -> pa.RecordBatch:
        """Return the side's own rows from a batch in the common form."""
        struct = tagged.column(self.column)
        return pa.RecordBatch.from_arrays(struct.flatten(), schema=pa.schema(list(struct.type)))


KEY = "__key"
"""The prefix of the names of the key columns."""

LEFT, RIGHT = Side("__left", "left"), Side("__right", "right")


def key_names(count: int) -> tuple[str, ...]:
    """Return the names of `count` key columns in the common form."""
    return tuple(f"{KEY}{place}" for place in range(count))


def is_side(schema: pa.Schema) -> bool:
    """Return True if a batch with this schema is in the common form."""
    return LEFT.column in schema.names or RIGHT.column in schema.names


def side_of(schema: pa.Schema) -> Side:
    """Return the side of a batch in the common form."""
    return LEFT if LEFT.column in schema.names else RIGHT


def other(side: Side) -> Side:
    """Return the opposite side."""
    return RIGHT if side is LEFT else LEFT


def _common(key: pa.Array) -> pa.Array:
    """Return the key column in the widest type of its kind: one state has keys of both sides."""
    kind = key.type
    if types.is_integer(kind) and kind.bit_width < 64:
        return key.cast(pa.int64())
    if types.is_floating(kind) and kind.bit_width < 64:
        return key.cast(pa.float64())
    if types.is_timestamp(kind):
        instants = key if kind.tz in (None, "UTC") else key.cast(pa.timestamp(kind.unit, "UTC"))
        return instants if kind.unit in ("us", "ns") else _in_microseconds(instants)
    return key


def _in_microseconds(key: pa.Array) -> pa.Array:
    """Convert seconds or milliseconds to microseconds, unless a value doesn't fit."""
    try:
        return key.cast(pa.timestamp("us", key.type.tz))
    except pa.ArrowInvalid:
        return key
