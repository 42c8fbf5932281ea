"""The error policy for a record that a user's function refuses: it stops the job, is skipped, or becomes a dead letter.

Invariant: a refused record leaves no trace but the count and its dead letter. The records before and after it are processed as if
it did not exist.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from functools import partial
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.errors import EvenflowError
from ..batch import Batch
from ..context import Emit
from ..dropped_records import Sample
from ..errors import FlowError, RecordError, shown
from .rows_encoder import RowsEncoder

OnError = Literal["stop", "skip", "dead_letter"]
"""The error policies of an operator that calls a user's function."""

CHOICES = ("stop", "skip", "dead_letter")

DEAD_LETTERS = "dead_letters"
"""The port of dead letters."""

DEAD_LETTER = pa.schema([(name, pa.string()) for name in ("operator", "key", "record", "error", "message")])
"""The columns of a dead letter.

`key` (null if the operator has no keys) and `record` are JSON; `error` is the error's type, `message` its text.
"""


class Refused(Exception):
    """The refusal of row `place` of a batch: `function` raised `error`, or if None, its result was wrong.

    `key`, if there is one. `note` follows the error's text.
    """

    def __init__(
        self, place: int, error: BaseException, function: Callable[..., Any] | None = None, key: Any = None, note: str = ""
    ) -> None:
        super().__init__(place, error)
        self.place, self.error, self.function, self.key, self.note = place, error, function, key, note


class ErrorPolicy:
    """The handling of refused records in one operator instance; `keyed`: whether it knows their keys."""

    def __init__(self, operator: str, on_error: OnError, *, keyed: bool = False) -> None:
        self.operator, self.on_error, self.keyed = operator, on_error, keyed
        self.skipped = 0
        self.sample = Sample()
        """A sample of the refused records."""

    @property
    def stops(self) -> bool:
        """True if the first refused record ends the job."""
        return self.on_error == "stop"

    def take(self, refused: Refused, batch: Batch, emit: Emit) -> None:
        """Handle the refusal of row `refused.place` of `batch`. Raises RecordError if it stops the job."""
        row = batch.slice(refused.place, 1)
        self.note(refused, row.to_rows()[0], None if row.times is None else int(row.times[0]), emit)

    def note(self, refused: Refused, record: Any, time: int | None, emit: Emit) -> None:
        """Handle a refusal as `take` does, for a record with the event time `time` in microseconds."""
        error = refused.error
        if self.stops or not _is_of_record(error):
            refuse(self.operator, refused.function, error, key=refused.key, record=record, note=refused.note)
        self.skipped += 1
        self.sample.add(self.operator, "refused", record, key=refused.key, error=error)
        if self.on_error == "dead_letter":
            letter = dead_letter(self.operator, json_text(refused.key) if self.keyed else None, record, error, refused.note)
            times = None if time is None else np.array([time], np.int64)
            emit(Batch(pa.RecordBatch.from_pylist([letter], schema=DEAD_LETTER), times), DEAD_LETTERS)

    def halved(self, batch: Batch, attempt: Callable[[Batch], None], emit: Emit) -> None:
        """Call `attempt` with the batch. If it raises Refused, which must leave no trace, attempt the halves.

        So the refused row is found.
        """
        try:
            attempt(batch)
        except Refused as refused:
            if self.stops:
                first = batch.slice(0, 1).to_rows()[0]
                refuse(self.operator, refused.function, refused.error, record=f"a batch of {batch.num_rows} rows beginning with {first}")
            if batch.num_rows == 1:
                self.take(refused, batch, emit)
                return
        else:
            return
        half = batch.num_rows // 2
        self.halved(batch.slice(0, half), attempt, emit)
        self.halved(batch.slice(half, batch.num_rows - half), attempt, emit)

    def encoded(
        self, encoder: RowsEncoder, results: list[Any], offsets: npt.NDArray[np.int64], batch: Batch, emit: Emit
    ) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """Encode `results` as columns: those from `offsets[i]` to `offsets[i + 1]` belong to row `i` of `batch`.

        A row whose results don't fit is refused. Yields (first row, end row, their results), in runs that are as long as
        possible.
        """
        first, count = 0, batch.num_rows
        while (begin := int(offsets[first])) < len(results):
            rest, stop = results[begin:], count
            try:
                rows = encoder.encode(rest, batch.rows.schema)
            except RecordError:
                place, error = encoder.first_misfit(rest, batch.rows.schema)
                stop = int(np.searchsorted(offsets, begin + place, side="right")) - 1
                if end := int(offsets[stop]) - begin:
                    yield first, stop, encoder.encode(rest[:end], batch.rows.schema)
                self.take(Refused(stop, error), batch, emit)
                first = stop + 1
            else:
                yield first, count, rows
                return


def refuse(
    operator: str, function: Callable[..., Any] | None, error: BaseException, *, key: Any = None, record: Any = None, note: str = ""
) -> NoReturn:
    """Raise RecordError for the `error` of a user's function. `note` follows its text.

    A RecordError itself is raised again, with key and record added if they are missing.
    """
    if isinstance(error, RecordError):
        if error.record is None:
            problem = _noted(error.problem, note)
            error = RecordError(error.operator, problem, key=error.key if error.key is not None else key, record=record)
        raise error
    problem = _noted(f"{function_name(function)} raised {shown(error)}", note)
    if not isinstance(error, Exception):
        problem += "; a function can't end its process: raise an error to end the job, or call job.stop() where it was started"
    raise RecordError(operator, problem, key=key, record=record) from error


def function_name(function: Any) -> str:
    """Return the name of a user's function in messages."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__name__))


def _is_of_record(error: BaseException) -> bool:
    """Return True if the error may be the record's fault, so that the job can continue without it."""
    if isinstance(error, EvenflowError):
        return isinstance(error, RecordError)
    return isinstance(error, Exception) and not isinstance(error, MemoryError)


def dead_letter(operator: str, key: str | None, record: Any, error: BaseException, note: str = "") -> dict[str, str | None]:
    """Return the dead letter of a record. `note` follows the error's text."""
    message = error.problem if isinstance(error, RecordError) else shown(error).removeprefix(f"{type(error).__name__}: ")
    values = {"operator": operator, "key": key, "record": json_text(record)}
    return {**values, "error": type(error).__name__, "message": _noted(message, note)}


def _noted(text: str, note: str) -> str:
    return f"{text} ({note})" if note else text


def check_on_error(on_error: str, method: str) -> OnError:
    """Return the error policy. Raises FlowError for an unknown one."""
    if on_error not in CHOICES:
        raise FlowError(f'{method}(on_error={on_error!r}): expected "stop", "skip" or "dead_letter"')
    return on_error  # type: ignore[return-value]  # it is one of them


def json_text(value: Any) -> str:
    r"""Return `value` as JSON, for people and programs that read dead letters.

    Times are ISO 8601, bytes hexadecimal; other values that JSON lacks become their Python text, also NaN and infinity.

    >>> from datetime import date
    >>> json_text({"day": date(2026, 1, 31), "raw": b"\xff", "n": None})
    '{"day": "2026-01-31", "raw": "ff", "n": null}'
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and value - value != 0 else value
