"""A sink that discards rows, for measurements.

>>> discard().name
'discard'
"""

from __future__ import annotations

from typing import Any

from ...engine.batch import Batch
from ...engine.sink import Sink, SinkWriter


def discard(*, name: str = "discard") -> DiscardSink:
    """Discard the rows."""
    return DiscardSink(name)


class DiscardSink(Sink):
    """The sink that `discard` creates."""

    guarantee = "discards rows"

    def __init__(self, name: str) -> None:
        self.name = name

    def writer(self, index: int, parallelism: int) -> DiscardWriter:
        return DiscardWriter()


class DiscardWriter(SinkWriter):
    """A writer that keeps nothing."""

    def write(self, batch: Batch) -> None:
        pass

    def prepare(self, checkpoint: int) -> list[Any]:
        return []
