"""The first operator of a stream: passes on the batches that the worker's reader polled."""

from __future__ import annotations

from dataclasses import dataclass

from ...batch import Batch
from ...context import Context, Emit
from ...source import Source
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Read(Operator):
    """Stands for the source in the chain; the worker makes the reader and polls it."""

    source: Source

    def open(self, context: Context) -> ReadInstance:
        return ReadInstance(context)

    def describe(self) -> str:
        return self.source.guarantee


class ReadInstance(OperatorInstance):
    """Has no state: the reader knows its position."""

    def process(self, batch: Batch, emit: Emit) -> None:
        emit(batch)
