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

import pyarrow as pa
import pyarrow.compute as pc

from ...engine.batch import Batch
from ...engine.weights import WEIGHT, with_weight


def net_changes(rows: Iterable[pa.RecordBatch], key: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the keys that are gone, as rows with a weight of -1, and then the rows that replace those of their keys.

    Rows without weights come first, as they are.
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
    names, total = [name for name in table.schema.names if name != WEIGHT], f"{WEIGHT}_sum"
    sums = table.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    changes = sums.filter(pc.not_equal(sums[total], 0))
    added = pc.greater(changes[total], 0)
    of_keys = changes.select([*key]).append_column("added", added).group_by([*key], use_threads=False).aggregate([("added", "any")])
    for gone in of_keys.filter(pc.invert(of_keys["added_any"])).select([*key]).combine_chunks().to_batches():
        yield with_weight(gone, -1)
    yield from changes.filter(added).select(names).combine_chunks().to_batches()
