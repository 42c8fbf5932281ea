"""Every error that evenflow raises on purpose, classified by its cause.

`EvenflowError` is the base. `FlowError` is a mistake in how the dataflow was written, found before anything runs. `RecordError` is a record
(or a user function on it) that an operator could not process. `ConnectorError` comes from outside: a file, a folder, a Spark query.
`ProtocolError` is a peer that broke the protocol.

>>> raise FlowError("operator `count` is defined twice")
Traceback (most recent call last):
    ...
evenflow.engine.errors.FlowError: operator `count` is defined twice
"""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

_PLAIN = (type(None), bool, int, float, str, bytes, date, time, timedelta, Decimal)
"""A datetime is a date."""


class EvenflowError(Exception):
    """Base class of every error that evenflow raises on purpose."""


class FlowError(EvenflowError):
    """The dataflow is not well formed: found when it is built or planned, before any worker starts."""


class RecordError(EvenflowError):
    """An operator could not process a record: a user function raised, or a value had a wrong type.

    The message names the operator, the key if there is one, and the record. In another process `key` and `record` keep their values if they
    consist of Python's own types. Otherwise they are text, because not every process can unpickle a user's objects.
    """

    def __init__(self, operator: str, problem: str, *, key: Any = None, record: Any = None) -> None:
        self.operator, self.problem, self.key, self.record = operator, problem, key, record
        parts = [f"operator `{operator}`: {problem}"]
        if key is not None:
            parts.append(f"key: {_short(key)}")
        if record is not None:
            parts.append(f"record: {_short(record)}")
        super().__init__("\n  ".join(parts))

    def __reduce__(self) -> Any:
        return _rebuild_record_error, (self.operator, self.problem, _portable(self.key), _portable(self.record))


class ConnectorError(EvenflowError):
    """A source or a sink could not read or write: names the connector, the path, and what to do."""


class ProtocolError(EvenflowError):
    """A peer sent something that the protocol does not allow; the receiver's state is unchanged."""


class JobError(EvenflowError):
    """A job failed, or its present state does not allow the request."""


class CorruptCheckpointError(EvenflowError):
    """A checkpoint can't be read: one of its files is missing, truncated or altered."""

    def __init__(self, worker: str, checkpoint: int, problem: str) -> None:
        self.worker, self.checkpoint, self.problem = worker, checkpoint, problem
        super().__init__(f"worker {worker} can't restore checkpoint {checkpoint}: {problem}")

    def __reduce__(self) -> Any:
        return CorruptCheckpointError, (self.worker, self.checkpoint, self.problem)


def _rebuild_record_error(operator: str, problem: str, key: Any, record: Any) -> RecordError:
    return RecordError(operator, problem, key=key, record=record)


def is_own(error: BaseException) -> bool:
    """Whether the error's class is evenflow's own. A class that a user derived may need arguments that a pickle doesn't have."""
    return isinstance(error, EvenflowError) and type(error).__module__.partition(".")[0] == __name__.partition(".")[0]


def shown(error: BaseException) -> str:
    """Type and text of any error; a user's error may not be able to give its text."""
    try:
        text = str(error)
    except BaseException as problem:  # noqa: BLE001 -- it is a user's method
        text = f"(its text can't be had: its __str__ raises {type(problem).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _short(value: Any, limit: int = 500) -> str:
    try:
        text = repr(value)
    except BaseException as error:  # noqa: BLE001 -- it is a user's method
        return f"a {type(value).__name__} (its __repr__ raises {type(error).__name__})"
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _portable(value: Any) -> Any:
    """The value if any process can unpickle it, else its text."""
    try:
        return value if _is_plain(value) else _short(value)
    except RecursionError:
        return _short(value)


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(_is_plain(name) and _is_plain(item) for name, item in value.items())
    return isinstance(value, _PLAIN) and type(value).__module__ in ("builtins", "datetime", "decimal")
