"""The last operator of a stream: hands batches to a sink's writer."""

from __future__ import annotations

from typing import Any

from ..batch import Batch
from ..sink import Sink, SinkWriter
from .base import Context, Emit, Operator


class Write(Operator):
    """Writes to the writer that the sink makes for this worker; nothing is emitted."""

    writer: SinkWriter

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def open(self, context: Context) -> None:
        super().open(context)
        self.writer = self.sink.writer(context.index, context.parallelism)

    def process(self, batch: Batch, emit: Emit) -> None:
        self.writer.write(batch)

    def prepare(self, checkpoint: int) -> list[Any]:
        """Make what was written durable; the committables of `checkpoint`."""
        return self.writer.prepare(checkpoint)

    def close(self) -> None:
        if hasattr(self, "writer"):
            self.writer.close()

    def describe(self) -> str:
        return self.sink.guarantee
