"""The keys of a batch as places in a direct-address table, where some places may stay empty.

The place of an integer is its distance from the lowest; that of a text in a dictionary is its index. An aggregation by place, which
then takes the places that have rows, needn't find the distinct keys first; finding them takes longer than counting and summing.
It pays off while there are few places for each row.

>>> keys = direct_keys(pa.record_batch({"k": [7, 9, 7] * LEAST}), ("k",), "count")
>>> keys.codes[:3].tolist(), keys.size, keys.column(np.array([0, 2])).to_pylist()
([0, 2, 0], 3, [7, 9])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.words import Where
from .encoding import integers_of, key_column, range_of

LEAST = 8_192
"""The least number of rows for which it pays off to check if a table is worthwhile."""

PLACES = 2
"""The most places for each row."""


@dataclass(frozen=True, slots=True)
class DirectKeys:
    """The keys of a batch as places.

    `codes`: the place of each row's key, shape (rows,), below `size`; `column`: the keys at places, where two texts may be equal.
    """

    codes: npt.NDArray[np.int64]
    size: int
    column: Callable[[Where], pa.Array]


def direct_keys(rows: pa.RecordBatch, names: tuple[str, ...], operator: str) -> DirectKeys | None:
    """Return the keys in the columns `names`; None where a table doesn't pay off. Raises RecordError for a missing column."""
    if rows.num_rows < LEAST or len(names) != 1:
        return None
    column = key_column(rows, names[0], operator)
    keys = _of_texts(column) if is_coded(column.type) else _of_integers(column)
    return keys if keys is not None and keys.size <= PLACES * rows.num_rows else None


def is_coded(kind: pa.DataType) -> bool:
    """Return True for a dictionary of texts; sources read a key column as one if only its equality matters."""
    return pa.types.is_dictionary(kind) and kind.value_type in _TEXTS


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with dictionaries of texts decoded: these may have far more values than the rows."""
    for place, kind in enumerate(rows.schema.types):
        if is_coded(kind):
            rows = rows.set_column(place, rows.schema.names[place], rows.column(place).cast(kind.value_type))
    return rows


_TEXTS = frozenset({pa.string(), pa.binary()})


def _of_texts(column: pa.DictionaryArray) -> DirectKeys | None:
    if column.null_count:
        return None
    return DirectKeys(
        column.indices.to_numpy().astype(np.int64), len(column.dictionary), lambda places: column.dictionary.take(pa.array(places))
    )


def _of_integers(column: pa.Array) -> DirectKeys | None:
    integers = integers_of(column)
    if integers is None:
        return None
    lowest, size = range_of(integers)

    def keys(places: Where) -> pa.Array:
        values = pa.array(places + lowest)
        return values if values.type == column.type else values.cast(column.type)

    return DirectKeys(integers - lowest if lowest else integers, size, keys)
