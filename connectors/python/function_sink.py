"""A sink that passes batches of rows to one function, and its return values to another when a checkpoint completes.

>>> import pyarrow as pa
>>> from evenflow.engine.batch import Batch
>>> sink = to_function(lambda rows: sum(row["n"] for row in rows), commit=lambda checkpoint, values: print(checkpoint, values))
>>> writer = sink.writer(0, 1)
>>> writer.write(Batch(pa.record_batch({"n": [1, 2]})))
>>> sink.commit(7, writer.prepare(7))
7 [3]
[]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.batch import Batch
from ...engine.errors import ConnectorError
from ...engine.functions.error_policy import function_name, refuse
from ...engine.functions.user_function import check_function
from ...engine.sink import Sink, SinkWriter
from ...state.packing import pack_value, unpack_value

Take = Callable[[list[dict[str, Any]]], Any]
"""A function that takes the rows of a batch and returns a value that describes where it put them."""

Commit = Callable[[int, list[Any]], object]
"""A function that makes visible the rows described by the values that `Take` returned since the previous checkpoint."""


def to_function(function: Take, *, commit: Commit | None = None, name: str = "to_function") -> FunctionSink:
    """Call `function(rows)` in the worker for each batch, with its rows as a list of dicts. `to_callback` calls a function for
    each row.

    Without `commit` rows are delivered at least once: those since the last checkpoint are repeated after a recovery. With it,
    `function` stores the rows where they aren't visible yet, such as a file under a temporary name or rows with a batch's number,
    and returns a description: None, numbers, strings, bytes, lists, tuples and dicts. When a checkpoint is complete,
    `commit(checkpoint, values)` is called once in the job's coordinator, with all workers' values since the previous checkpoint,
    and makes the rows visible. It isn't called without values.

    Delivery is exactly once if `commit` is atomic and may be repeated with the same arguments, which happens after a crash.
    Removing rows that are never committed, because their worker was lost, is up to you. If `function` raises, the job stops with
    a RecordError; if `commit` raises, the job restores its checkpoint and calls it again.
    """
    checked: Take = check_function(function, name, "rows")
    return FunctionSink(checked, None if commit is None else check_function(commit, name, "checkpoint", "values"), name)


class FunctionSink(Sink):
    """The sink that `to_function` creates."""

    def __init__(self, function: Take, commit: Commit | None, name: str) -> None:
        self.name, self._function, self._commit = name, function, commit
        self.guarantee = (
            "at least once (rows since the last checkpoint arrive again after a recovery)"
            if commit is None
            else "exactly once if commit is atomic and may be repeated (called with the checkpoint)"
        )

    def writer(self, index: int, parallelism: int) -> FunctionWriter:
        return FunctionWriter(self._function, self.name, committed=self._commit is not None)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        if self._commit is not None and committables:
            self._commit(checkpoint, [unpack_value(value) for value in committables])
        return []

    @property
    def retractable(self) -> bool:
        return self._commit is None


class FunctionWriter(SinkWriter):
    """A writer that keeps the function's return values until the checkpoint; a committable is one of them, packed."""

    def __init__(self, function: Take, operator: str, *, committed: bool) -> None:
        self._function, self._operator, self._committed = function, operator, committed
        self._values: list[bytes] = []

    def write(self, batch: Batch) -> None:
        if not batch.num_rows:
            return
        rows = batch.to_rows()
        first = rows[0]
        try:
            value = self._function(rows)
        except BaseException as error:  # noqa: BLE001 -- a user's function may raise anything
            refuse(self._operator, self._function, error, record=f"a batch of {batch.num_rows} rows beginning with {first}")
        if self._committed:
            self._values.append(self._packed(value))

    def prepare(self, checkpoint: int) -> list[Any]:
        values, self._values = self._values, []
        return values

    def _packed(self, value: Any) -> bytes:
        try:
            return pack_value(value)
        except (TypeError, ValueError, OverflowError) as error:
            place = f"operator `{self._operator}`: {function_name(self._function)}"
            raise ConnectorError(f"{place} returned {value!r:.200}, which can't be kept until the commit: {error}") from error
