"""A sink that calls a function for each row, in the worker.

>>> import pyarrow as pa
>>> writer = to_callback(lambda row: print(row["n"])).writer(0, 1)
>>> from evenflow.engine.batch import Batch
>>> writer.write(Batch(pa.record_batch({"n": [1, 2]})))
1
2
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...engine.batch import Batch
from ...engine.functions.error_policy import refuse
from ...engine.functions.user_function import check_function
from ...engine.sink import Sink, SinkWriter


def to_callback(fn: Callable[[dict[str, Any]], object], *, name: str = "to_callback") -> CallbackSink:
    """Call `fn(row)` in the worker for each row, at least once: after a recovery, rows since the last checkpoint arrive again.

    The result of `fn` is ignored. If it raises, the job stops with a RecordError that holds the row. `to_function` calls a function
    for each batch, and may commit with the checkpoint.
    """
    return CallbackSink(check_function(fn, name, "row"), name)


class CallbackSink(Sink):
    """The sink that `to_callback` creates."""

    guarantee = "at least once (rows since the last checkpoint arrive again after a recovery)"

    may_change = frozenset({"fn"})

    def __init__(self, fn: Callable[[dict[str, Any]], object], name: str) -> None:
        self.name, self._fn = name, fn

    def writer(self, index: int, parallelism: int) -> CallbackWriter:
        return CallbackWriter(self._fn, self.name)


class CallbackWriter(SinkWriter):
    """A writer that calls the function as rows arrive, so there is nothing to prepare."""

    def __init__(self, fn: Callable[[dict[str, Any]], object], operator: str) -> None:
        self._fn, self._operator = fn, operator

    def write(self, batch: Batch) -> None:
        fn = self._fn
        for row in batch.to_rows():
            try:
                fn(row)
            except BaseException as error:  # noqa: BLE001 -- a user's function may raise anything
                refuse(self._operator, fn, error, record=row)

    def prepare(self, checkpoint: int) -> list[Any]:
        return []
