"""The keys of a batch as places of a direct-address table, some of which may stay empty.

The place of an integer is its distance from the lowest, that of a text in a dictionary its index. Who aggregates by place and then takes
the places that have rows needn't find the distinct keys first, which costs more than to count and to sum. That pays off while there are few
places for each row.

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
"""The rows from which on it pays off to look whether a table would do."""

PLACES = 2
"""The most places for each row."""


@dataclass(frozen=True, slots=True)
class DirectKeys:
    """`codes`: the place of each row's key, shape (rows,), below `size`; `column`: the keys at places, of which two may be equal texts."""

    codes: npt.NDArray[np.int64]
    size: int
    column: Callable[[Where], pa.Array]


def direct_keys(rows: pa.RecordBatch, names: tuple[str, ...], operator: str) -> DirectKeys | None:
    """The keys in the columns `names`; None where a table doesn't pay off. Raises RecordError for a missing column."""
    if rows.num_rows < LEAST or len(names) != 1:
        return None
    column = key_column(rows, names[0], operator)
    keys = _of_texts(column) if is_coded(column.type) else _of_integers(column)
    return keys if keys is not None and keys.size <= PLACES * rows.num_rows else None


def is_coded(kind: pa.DataType) -> bool:
    """Whether this is a dictionary of texts, as a source gives a key column that is only told apart."""
    return pa.types.is_dictionary(kind) and kind.value_type in _TEXTS


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without dictionaries of texts: their dictionaries may have far more values than the rows."""
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
