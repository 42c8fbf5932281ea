"""The last operator of a stream: hands batches to a sink's writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...batch import Batch
from ...context import Context, Emit
from ...sink import Sink, SinkWriter
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Write(Operator):
    """Stands for the sink in the chain."""

    sink: Sink

    def open(self, context: Context) -> WriteInstance:
        return WriteInstance(context, self.sink.writer(context.index, context.parallelism))

    def describe(self) -> str:
        return self.sink.guarantee


class WriteInstance(OperatorInstance):
    """Writes to the writer that the sink made for this worker; nothing is emitted."""

    def __init__(self, context: Context, writer: SinkWriter) -> None:
        super().__init__(context)
        self.writer = writer

    def process(self, batch: Batch, emit: Emit) -> None:
        self.writer.write(batch)

    def prepare(self, checkpoint: int) -> list[Any]:
        """Make the written rows durable; returns the committables of `checkpoint`."""
        return self.writer.prepare(checkpoint)

    def close(self) -> None:
        self.writer.close()
