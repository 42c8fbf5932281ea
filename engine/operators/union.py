"""`union`: the records of several streams as one."""

from __future__ import annotations

from ..batch import Batch
from .base import Emit, Operator


class Union(Operator):
    """Passes everything on; the task takes the minimum of the inputs' watermarks."""

    def process(self, batch: Batch, emit: Emit) -> None:
        emit(batch)
