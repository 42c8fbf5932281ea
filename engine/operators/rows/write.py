"""The last operator of a stream: it passes batches to a sink's writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...batch import Batch
from ...context import Context, Emit
from ...sink import Sink, SinkWriter
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Write(Operator):
    """The sink in the chain."""

    sink: Sink

    def open(self, context: Context) -> WriteInstance:
        return WriteInstance(context, self.sink.writer(context.index, context.parallelism))

    def describe(self) -> str:
        return self.sink.guarantee


class WriteInstance(OperatorInstance):
    """An instance that writes to the sink's writer for this worker; nothing is emitted."""

    def __init__(self, context: Context, writer: SinkWriter) -> None:
        super().__init__(context)
        self.writer = writer

    def process(self, batch: Batch, emit: Emit) -> None:
        self.writer.write(batch)

    def prepare(self, checkpoint: int) -> list[Any]:
        """Make the written rows durable; return the committables of `checkpoint`."""
        return self.writer.prepare(checkpoint)

    def close(self) -> None:
        self.writer.close()
