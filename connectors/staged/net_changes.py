"""The net changes of a checkpoint's rows with weights: which rows a table has to have afterwards, and which keys are gone.

A key that moves has rows from two workers in one checkpoint, in an unknown order. Sums of weights don't depend on it: a row that was
added and taken back within the checkpoint cancels out, and one row of each key is left, or none.

>>> old, new = {"k": "a", "n": 1}, {"k": "a", "n": 2}
>>> rows = [{**new, WEIGHT: -1}, {**old, WEIGHT: 1}, {**old, WEIGHT: -1}, {"k": "b", "n": 9, WEIGHT: -1}]
>>> [batch.to_pylist() for batch in net_changes([pa.RecordBatch.from_pylist([*rows, {**new, WEIGHT: 1}, {**new, WEIGHT: 1}])], ("k",))]
[[{'k': 'b', '__weight': -1}], [{'k': 'a', 'n': 2}]]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgpack
import pyarrow as pa
import pyarrow.compute as pc

from ...engine.batch import Batch
from ...engine.weights import WEIGHT, with_weight

_ADDED, _PLACE = f"{WEIGHT}.added", f"{WEIGHT}.place"
"""Columns next to those of the rows."""


def net_changes(rows: Iterable[pa.RecordBatch], key: Sequence[str], carried: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """Yield the keys that are gone, as rows with a weight of -1, and then the rows that replace those of their keys.

    Rows without weights come first, as they are. `carried`: columns that follow from the others, and aren't compared.
    """
    weighed = list[Batch]()
    for batch in rows:
        if WEIGHT in batch.schema.names:
            weighed.append(Batch(batch))
        else:
            yield batch
    if not weighed:
        return
    table = pa.Table.from_batches([Batch.concat(weighed).rows])
    compared = [name for name in table.schema.names if name not in (WEIGHT, *carried)]
    places = pa.array(range(table.num_rows), pa.int64())
    numbered = pa.table([*(_comparable(table[name]) for name in compared), table[WEIGHT], places], [*compared, WEIGHT, _PLACE])
    sums = numbered.group_by(compared, use_threads=False).aggregate([(WEIGHT, "sum"), (_PLACE, "max")])
    changes = sums.filter(pc.not_equal(sums[f"{WEIGHT}_sum"], 0))
    added = pc.greater(changes[f"{WEIGHT}_sum"], 0)
    of_keys = changes.select([*key]).append_column(_ADDED, added).group_by([*key], use_threads=False).aggregate([(_ADDED, "any")])
    for gone in of_keys.filter(pc.invert(of_keys[f"{_ADDED}_any"])).select([*key]).combine_chunks().to_batches():
        yield with_weight(gone, -1)
    present = table.take(changes.filter(added)[f"{_PLACE}_max"])
    yield from present.select([name for name in table.schema.names if name != WEIGHT]).combine_chunks().to_batches()


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return values that Arrow can group: equal ones for equal values."""
    if pa.types.is_nested(column.type):
        return pa.array([msgpack.packb(value, default=str) for value in column.to_pylist()], pa.binary())
    return column
