"""A sink that prints rows as they arrive.

>>> import pyarrow as pa
>>> from evenflow.engine.batch import Batch
>>> print_rows("seen: ").writer(0, 1).write(Batch(pa.record_batch({"n": [1, 2]})))
seen: {'n': 1}
seen: {'n': 2}
"""

from __future__ import annotations

import sys
from typing import Any

from ...engine.batch import ITEM, Batch
from ...engine.sink import Sink, SinkWriter


def print_rows(prefix: str = "", *, name: str = "print") -> PrintSink:
    """Print `prefix` and the row to the worker's standard output, at least once. A stream of plain values prints the values.

    >>> from evenflow.connectors.python.items import from_items
    >>> print_rows().writer(0, 1).write(from_items(["a", "b"]).reader(0, 1).poll(10))
    'a'
    'b'
    """
    return PrintSink(prefix, name)


class PrintSink(Sink):
    """The sink that `print_rows` creates."""

    guarantee = "at least once (rows since the last checkpoint are printed again after a recovery)"

    may_change = frozenset({"prefix"})

    def __init__(self, prefix: str, name: str) -> None:
        self.name, self._prefix = name, prefix

    def writer(self, index: int, parallelism: int) -> PrintWriter:
        return PrintWriter(self._prefix)


class PrintWriter(SinkWriter):
    """A writer that prints a batch in one write, so that lines of workers that share a terminal don't mix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def write(self, batch: Batch) -> None:
        rows = batch.to_rows()
        values = [row[ITEM] for row in rows] if batch.rows.schema.names == [ITEM] else rows
        sys.stdout.write("".join(f"{self._prefix}{value!r}\n" for value in values))
        sys.stdout.flush()

    def prepare(self, checkpoint: int) -> list[Any]:
        return []
