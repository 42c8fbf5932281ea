"""The first operator of a stream: it passes on the batches that the worker's reader polled."""

from __future__ import annotations

from dataclasses import dataclass

from ...batch import Batch
from ...context import Context, Emit
from ...source import Source
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Read(Operator):
    """The source in the chain; the worker creates the reader and polls it."""

    source: Source

    def open(self, context: Context) -> ReadInstance:
        return ReadInstance(context)

    def describe(self) -> str:
        return self.source.guarantee


class ReadInstance(OperatorInstance):
    """An instance without state: the reader knows its position."""

    def process(self, batch: Batch, emit: Emit) -> None:
        emit(batch)
