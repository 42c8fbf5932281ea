"""The common form of the two inputs of a join: key columns of the same names in front, and the row itself as one struct column.

The struct's name says the side. So both inputs are partitioned, moved, set aside and saved as one stream, and only the join tells them
apart.

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
    """One input; `column`: the name of the struct column with its rows; `dealt`: the side's name in routes of split keys."""

    column: str
    dealt: Dealt

    def tag(self, batch: Batch, keys: tuple[str, ...], operator: str = "join") -> Batch:
        """The batch in the common form. Raises RecordError, naming `operator`, for a missing key column."""
        columns = [self.form_key(key_column(batch.rows, key, operator)) for key in keys]
        return batch.with_rows(self.form(columns, batch.rows))

    @staticmethod
    def form_key(column: pa.Array) -> pa.Array:
        """A key column in the type that both sides have in the common form."""
        return _common(column)

    def form(self, keys: list[pa.Array], rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows in the common form; `keys`: their key columns."""
        struct = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
        return pa.RecordBatch.from_arrays([*keys, struct], names=[*key_names(len(keys)), self.column])

    def rows(self, tagged: pa.RecordBatch) -> pa.RecordBatch:
        """The side's own rows of a batch in the common form."""
        struct = tagged.column(self.column)
        return pa.RecordBatch.from_arrays(struct.flatten(), schema=pa.schema(list(struct.type)))


KEY = "__key"
"""The beginning of the names of the key columns."""

LEFT, RIGHT = Side("__left", "left"), Side("__right", "right")


def key_names(count: int) -> tuple[str, ...]:
    """The names of `count` key columns in the common form."""
    return tuple(f"{KEY}{place}" for place in range(count))


def is_side(schema: pa.Schema) -> bool:
    """Whether a batch is in the common form."""
    return LEFT.column in schema.names or RIGHT.column in schema.names


def side_of(schema: pa.Schema) -> Side:
    """The side that a batch in the common form came from."""
    return LEFT if LEFT.column in schema.names else RIGHT


def other(side: Side) -> Side:
    """The side that `side` is joined with."""
    return RIGHT if side is LEFT else LEFT


def _common(key: pa.Array) -> pa.Array:
    """The key column in the widest type of its kind: one state has keys of both sides."""
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
    """Seconds or milliseconds in microseconds, if all values fit."""
    try:
        return key.cast(pa.timestamp("us", key.type.tz))
    except pa.ArrowInvalid:
        return key
