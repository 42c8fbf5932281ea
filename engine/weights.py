"""Rows with weights: an aggregate's old row with -1 and its new row with 1, in the same batch.

Sums of weights commute, so a reader that adds up rows by weight is right in whatever order rows of different batches arrive. The
weight is a column of the batch, which no user's function sees.

>>> weights_of(pa.record_batch({"n": [3, 4], WEIGHT: [-1, 1]}), "total").tolist()
[-1, 1]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .errors import ProtocolError

WEIGHT = "__weight"
"""The column of weights, int64, 1 or -1."""

WEIGHTS = "weights"
"""The port on which an aggregate emits rows with weights."""


def weights_of(rows: pa.RecordBatch, operator: str) -> npt.NDArray[np.int64]:
    """Return the weight of each row, shape (rows,). Raises ProtocolError if the rows have none."""
    place = rows.schema.get_field_index(WEIGHT)
    if place < 0:
        raise ProtocolError(f"operator `{operator}`: its rows have no weights; there are: {', '.join(rows.schema.names)}")
    weights: npt.NDArray[np.int64] = rows.column(place).to_numpy()
    return weights


def without_weights(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows without the column of weights."""
    return rows.select([name for name in rows.schema.names if name != WEIGHT])


def with_weight(rows: pa.RecordBatch, weight: int) -> pa.RecordBatch:
    """Return the rows with this weight for each."""
    return rows.append_column(WEIGHT, pa.array(np.full(rows.num_rows, weight, np.int64)))
