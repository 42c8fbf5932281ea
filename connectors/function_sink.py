"""A sink that gives rows to a function a batch at a time, and what the function returned to another when a checkpoint counts.

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

from ..engine.batch import Batch
from ..engine.errors import ConnectorError
from ..engine.functions.error_policy import function_name, refuse
from ..engine.functions.user_function import check_function
from ..engine.sink import Sink, SinkWriter
from ..state.packing import pack_value, unpack_value

Take = Callable[[list[dict[str, Any]]], Any]
"""Takes the rows of a batch; what it returns describes where they are."""

Commit = Callable[[int, list[Any]], object]
"""Makes what `Take` returned since the checkpoint before visible."""


def to_function(function: Take, *, commit: Commit | None = None, name: str = "to_function") -> FunctionSink:
    """Call `function(rows)` in the worker for each batch, with its rows as a list of dicts. `to_callback` calls a function for each row.

    Without `commit` rows count at least once: those since the last checkpoint come again after a recovery. With it, `function` puts the
    rows where nobody looks yet, as a file under a temporary name or rows with a batch's number, and returns what says where: a value of
    None, numbers, strings, bytes, lists, tuples and dicts. When a checkpoint is complete, `commit(checkpoint, values)` is called once, with
    what the function returned in all workers since the one before, and makes it visible. If there are no values it isn't called.

    Rows count exactly once if `commit` is atomic and may be called again with the same arguments, which happens after a crash. It is called
    in the job's coordinator. What the function put away and is never committed, because its worker was lost, is yours to remove. If the
    function raises, the job stops with a RecordError; if `commit` raises, the job goes back to its checkpoint, and it is called again.
    """
    checked: Take = check_function(function, name, "rows")
    return FunctionSink(checked, None if commit is None else check_function(commit, name, "checkpoint", "values"), name)


class FunctionSink(Sink):
    """See `to_function`."""

    def __init__(self, function: Take, commit: Commit | None, name: str) -> None:
        self.name, self._function, self._commit = name, function, commit
        self.guarantee = (
            "at least once (rows since the last checkpoint come again after a recovery)"
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
    """Keeps what the function returned until the checkpoint; a committable is such a value, packed."""

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
