"""The first operator of a stream: passes on what the worker's reader polled."""

from __future__ import annotations

from ..batch import Batch
from ..source import Source
from .base import Emit, Operator


class Read(Operator):
    """Stands for the source in the chain; the worker makes the reader and polls it."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def process(self, batch: Batch, emit: Emit) -> None:
        emit(batch)

    def describe(self) -> str:
        return self.source.guarantee
