"""`map`: a row for every row, by a user's function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..batch import Batch
from ..rows import RowsEncoder
from .base import Context, Emit, Operator
from .user_function import call_rows


class Map(Operator):
    """Applies `function(row) -> row` (a dict, or a plain value that becomes the column `item`)."""

    def __init__(self, function: Callable[[dict[str, Any]], Any], schema: pa.Schema | None = None) -> None:
        self.function, self.schema = function, schema

    def open(self, context: Context) -> None:
        super().open(context)
        self.encoder = RowsEncoder(context.name, self.schema)

    def process(self, batch: Batch, emit: Emit) -> None:
        emit(batch.with_rows(self.encoder.encode(call_rows(self.context.name, self.function, batch))))

    def describe(self) -> str:
        return getattr(self.function, "__qualname__", "function")
