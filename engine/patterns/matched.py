"""Matches as columns: the key, a column for each step that matches rows, and the times of the match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..batch import Batch, Times
from ..columns import Columns
from .kept_rows import RowBytes, plain_kind
from .pattern import Pattern

START, END = "match_start", "match_end"
"""The columns of the event time of a match's first row, and of its last one, or of the end of `within` if its last step is absent."""

TIMESTAMP = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Match:
    """A match: the packed rows of each step that has some, and event times in microseconds; `at`: when it was decided."""

    key: Any
    steps: Sequence[Sequence[bytes]]
    start: int
    end: int
    at: int


def matches_as_rows(
    matches: Sequence[Match],
    pattern: Pattern,
    keys: tuple[str, ...],
    key_columns: Callable[[list[Any]], list[pa.Array]],
    rows: RowBytes,
    schema: bytes,
) -> Batch:
    """Return matches whose rows have the schema `schema` as a batch."""
    columns = key_columns([match.key for match in matches])
    for place, number in enumerate(pattern.present):
        lists = [match.steps[place] for match in matches]
        found = rows.unpack(schema, [row for each in lists for row in each])
        structs = pa.StructArray.from_arrays(found.columns, fields=list(found.schema))
        if pattern.steps[number].repeated:
            offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])])
            columns.append(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs))
        else:
            columns.append(structs)
    columns += [_timestamps(np.array(times, np.int64)) for times in ([m.start for m in matches], [m.end for m in matches])]
    names = [*keys, *(pattern.steps[number].name for number in pattern.present), START, END]
    return Batch(pa.RecordBatch.from_arrays(columns, names=names), np.array([match.at for match in matches], np.int64))


def known_columns(pattern: Pattern, keys: tuple[str, ...], rows: Columns) -> Columns:
    """Return the columns of matches, from the known columns of the rows."""
    schema = rows.schema()
    struct: pa.DataType | None = None
    if schema is not None and not any(pa.types.is_null(kind) for kind in schema.types):
        struct = pa.struct([(column.name, plain_kind(column.type)) for column in schema])
    types: dict[str, pa.DataType | None] = {key: rows.type_of(key) for key in keys}
    for number in pattern.present:
        step = pattern.steps[number]
        types[step.name] = pa.list_(struct) if step.repeated and struct is not None else struct
    return Columns({**types, START: TIMESTAMP, END: TIMESTAMP}, complete=True)


def _timestamps(times: Times) -> pa.Array:
    return pa.array(times).cast(pa.timestamp("us")).cast(TIMESTAMP)
