"""The records of the part count: JSON objects of about 100 bytes with four columns, keyed by `key`.

>>> batch_of(0, 2).to_pydict()
{'key': [7919, 5838], 'seq': [0, 1], 'name': ['some name 0', 'some name 1'], 'value': [0.0, 0.125]}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

KEYS = 10_000
TYPES: Final = {"key": "int64", "seq": "int64", "name": "string", "value": "double"}
PIECE = 10_000


def batch_of(first: int, last: int) -> pa.RecordBatch:
    """Return rows `first` to `last` - 1. A key comes once in `KEYS` rows."""
    seq = np.arange(first, last)
    names = pa.array([f"some name {number}" for number in range(100)])
    return pa.record_batch({"key": (seq + 1) * 7919 % KEYS, "seq": seq, "name": names.take(pa.array(seq % 100)), "value": seq * 0.125})


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Return batches of this many rows, in order."""
    return (batch_of(first, min(first + PIECE, rows)) for first in range(0, rows, PIECE))


def result_of(counts: dict[int, int]) -> dict[str, float]:
    """Return figures of the counts of all keys, to compare with another system's.

    >>> result_of({3: 2, 4: 5})
    {'rows': 7.0, 'keys': 2.0, 'weighted': 26.0}
    """
    weighted = sum(key * count for key, count in counts.items())
    return {"rows": float(sum(counts.values())), "keys": float(len(counts)), "weighted": float(weighted)}
