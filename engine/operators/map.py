"""`map`: a row for every row, by a user's function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ..batch import Batch
from ..rows import RowsEncoder
from .base import Context, Emit
from .refusals import OnError, Refusing
from .user_function import call_rows


class Map(Refusing):
    """Applies `function(row) -> row` (a dict, or a plain value that becomes the column `item`)."""

    def __init__(self, function: Callable[[dict[str, Any]], Any], schema: pa.Schema | None = None, on_error: OnError = "stop") -> None:
        self.function, self.schema, self.on_error = function, schema, on_error

    def open(self, context: Context) -> None:
        super().open(context)
        self.encoder = RowsEncoder(context.name, self.schema)

    def process(self, batch: Batch, emit: Emit) -> None:
        results, batch = call_rows(self.function, batch, self.refusals, emit)
        offsets = np.arange(len(results) + 1)
        for first, stop, rows in self.refusals.encoded(self.encoder, results, offsets, batch, emit):
            emit(batch.slice(first, stop - first).with_rows(rows))

    def describe(self) -> str:
        return getattr(self.function, "__qualname__", "function")
