"""Reads of the state of a running job: the value of a key now, and a table of all keys as of the newest complete checkpoint.

They need a connection to the job only, so that the web page reads in the same way as `Job`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterator
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, TypeVar

import pyarrow as pa

from .actors.task.task_ports import CheckpointReader
from .building.requests import checked_key, checked_text
from .engine.batch import Batch
from .engine.errors import ConnectorError, JobTimeoutError, RequestError
from .engine.operators.state_reader import SavedPart
from .engine.protocol.ids import CheckpointNumber
from .engine.snapshots.chain import resolved
from .engine.time.duration import Duration, seconds
from .scheduler.protocol.manifest import TaskEntry
from .scheduler.protocol.requests import ReadKey, Responder, ShowTable
from .scheduler.protocol.saved_table import SavedTable
from .state.errors import CorruptStateError
from .state.store import CheckpointStore

T = TypeVar("T")

POLL = 0.05
"""Seconds from one question to the next while there is no answer."""


def awaited(ask: Callable[[], T | None], timeout: Duration | None, what: str) -> T:
    """Ask until there is an answer. Raises JobTimeoutError, naming `what`, if there is none within `timeout`."""
    deadline = None if timeout is None else time.monotonic() + seconds(timeout, "timeout")
    while (found := ask()) is None:
        if deadline is not None and time.monotonic() > deadline:
            raise JobTimeoutError(f"{what} is not complete within {timeout}")
        time.sleep(POLL)
    return found


def read_key(job: Responder, name: str, operator: str, key: Hashable, timeout: Duration | None) -> Any:
    """Return the present value of a key, None if it has none. Raises as `Job.read` does; `name`: the job's."""
    request = ReadKey(checked_text(operator, "operator"), checked_key(key), token_hex(8))
    answer = awaited(lambda: job.ask(request), timeout, f"reading key {key!r} of `{operator}` of job `{name}`")
    return None if answer.value is None else answer.value.value()


def find_table(job: Responder, operator: str) -> SavedTable | None:
    """Return the place of the operator's state in the newest complete checkpoint, None without one. Raises as `Job.table` does."""
    return job.ask(ShowTable(checked_text(operator, "operator")))


def read_table(job: Responder, name: str, operator: str, most: int | None = None) -> pa.Table:
    """Return the state of all keys of an operator in the newest complete checkpoint. Raises as `Job.table` does; `name`: the job's.

    A checkpoint whose files are removed meanwhile has been replaced by a newer one, which is read instead.
    """
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise RequestError(f"most is {most!r}: it must be a whole number, 1 or more")
    tried = 0
    while True:
        found = find_table(job, operator)
        if found is None:
            advice = "take one with job.checkpoint(), or read with fresh=True"
            raise RequestError(f"job `{name}` has completed no checkpoint since it began: {advice}")
        try:
            return table_of(found, CheckpointStore(found.url), most)
        except CorruptStateError as error:
            if found.checkpoint <= tried:
                raise ConnectorError(f"the state of `{operator}` in checkpoint {found.checkpoint} can't be read: {error}") from error
            tried = found.checkpoint


def table_of(saved: SavedTable, files: CheckpointReader, most: int | None = None) -> pa.Table:
    """Return the table in the files of a checkpoint, of `most` keys at most. Raises CorruptStateError if one is missing or damaged."""
    left = _Left(most)
    parts = (SavedPart(entry.watermark, left.of(_chunks(files, saved.checkpoint, entry))) for entry in saved.entries)
    table = saved.reader.table(saved.operator, parts, saved.change)
    plain = {place: column for place, column in enumerate(table.columns) if pa.types.is_dictionary(column.type)}
    for place, column in plain.items():
        table = table.set_column(place, table.schema.names[place], column.cast(column.type.value_type))
    created = datetime.fromtimestamp(saved.created, UTC).isoformat()
    return table.slice(0, most).replace_schema_metadata({"checkpoint": str(saved.checkpoint), "created": created})


def _chunks(files: CheckpointReader, checkpoint: CheckpointNumber, entry: TaskEntry) -> Iterator[Batch]:
    """Yield the state of one worker in chunks, each key once."""
    return map(Batch, resolved(files.chunks(checkpoint, file) for file in reversed(entry.files)))


def as_json(value: Any) -> str:
    """Return a value that was read as JSON; what JSON lacks is a text, or the value of a scalar or an array.

    >>> import numpy as np
    >>> as_json({"sizes": np.array([1, 2]), "at": datetime(2026, 1, 31)})
    '{"sizes": [1, 2], "at": "2026-01-31 00:00:00"}'
    """
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    for method in ("tolist", "as_py"):  # of numpy's arrays and scalars, and of Arrow's scalars
        if hasattr(value, method):
            return getattr(value, method)()
    return str(value)


class _Left:
    """The number of keys that are still wanted, None for all."""

    def __init__(self, most: int | None) -> None:
        self._most = most

    def of(self, chunks: Iterator[Batch]) -> Iterator[Batch]:
        """Yield chunks until there are enough keys."""
        while (self._most is None or self._most > 0) and (chunk := next(chunks, None)) is not None:
            self._most = None if self._most is None else self._most - chunk.num_rows
            yield chunk
