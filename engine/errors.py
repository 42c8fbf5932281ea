"""Errors by what a caller can do about them; `EvenflowError`, in `state/errors.py`, is the root of all.

| what it is | what to do |
| --- | --- |
| `FlowError`: the flow or its settings are wrong, found before a job runs | correct the program |
| `RecordError`: a record, or a user's function on it | correct the function or the data, or say `on_error=` |
| `ConnectorError`: a source or a sink, a file, Spark | check what the message names, and run again |
| `StateError`: a state backend or a checkpoint | check the disk, the server or the files, and run again |
| `ClusterError`: Ray, a node, a port, a folder for sockets | check the cluster, and run again |
| `JobFailedError`, of it `JobLostError` when processes died | the job is over: run it again, from its last checkpoint |
| `RequestError`, of it `JobBusyError` and `JobNotRunningError` | the job goes on as before: ask for something else, or later |
| `RequestError`, of it `UpgradeRolledBackError` | the job goes on with the old code: correct the new one |
| `JobTimeoutError` | the job goes on: ask again, or wait longer |
| `SnapshotError`: a load or dataflow snapshot | correct the JSON |
| `ProtocolError`: a peer sent what it must not | report it |

`JobError` is what `JobFailedError`, `RequestError` and `JobTimeoutError` have in common.

>>> raise FlowError("operator `count` is defined twice")
Traceback (most recent call last):
    ...
evenflow.engine.errors.FlowError: operator `count` is defined twice
"""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

from ..state.errors import EvenflowError
from ..state.known_secrets import redacted

_PLAIN = (type(None), bool, int, float, str, bytes, date, time, timedelta, Decimal)
"""A datetime is a date."""


class FlowError(EvenflowError):
    """The dataflow or its settings are not well formed: found when they are built or planned, before any worker starts."""


class RecordError(EvenflowError):
    """An operator could not process a record: a user function raised, or a value had a wrong type.

    The message names the operator, the key if there is one, and the record. In another process `key` and `record` keep their
    values if they consist of Python's own types. Otherwise they are text, because not every process can unpickle a user's
    objects.
    """

    def __init__(self, operator: str, problem: str, *, key: Any = None, record: Any = None) -> None:
        self.operator, self.problem, self.key, self.record = operator, redacted(problem), key, record
        parts = [f"operator `{operator}`: {problem}"]
        if key is not None:
            parts.append(f"key: {short(key)}")
        if record is not None:
            parts.append(f"record: {short(record)}")
        super().__init__("\n  ".join(parts))

    def __reduce__(self) -> Any:
        return _rebuild_record_error, (self.operator, self.problem, _portable(self.key), _portable(self.record)), self.noted


class ConnectorError(EvenflowError):
    """A source or a sink could not read or write: names the connector, the path, and what to do."""


class ProtocolError(EvenflowError):
    """A peer sent something that the protocol does not allow; the receiver's state is unchanged."""


class ClusterError(EvenflowError):
    """The Ray cluster or a machine doesn't give what a job needs: it can't be joined, has no room, or a port or folder can't be
    used.
    """


class SnapshotError(EvenflowError):
    """A load snapshot or a dataflow snapshot is none: names the entry, what was expected, and what it is."""


class JobError(EvenflowError):
    """The base of errors that concern a job as a whole."""


class JobFailedError(JobError):
    """The job has failed, or could not begin. With a folder for checkpoints it can be run again from its last checkpoint."""


class JobLostError(JobFailedError):
    """A process of the job, a worker's or the coordinator's, is gone, and the job could not go on without it."""


class JobTimeoutError(JobError, TimeoutError):
    """A wait took longer than its timeout. The job continues, and so may the requested action."""


class RequestError(JobError):
    """A request can't be fulfilled, or has failed; the job continues as before."""


class JobBusyError(RequestError):
    """The job moves, scales or replaces something already: ask again when that is done."""


class UpgradeRolledBackError(RequestError):
    """The new code of an upgrade was taken back, or the job ended before the upgrade did. `report`: the upgrade's `UpgradeReport`."""

    def __init__(self, text: str, report: Any = None) -> None:
        super().__init__(text)
        self.report = report


class JobNotRunningError(RequestError):
    """The job isn't running: it is starting or stopping, has ended, or no job has that name."""


def _rebuild_record_error(operator: str, problem: str, key: Any, record: Any) -> RecordError:
    return RecordError(operator, problem, key=key, record=record)


def is_own(error: BaseException) -> bool:
    """Return True if the error's class is evenflow's own, not derived by a user.

    A class that a user derived may need arguments that a pickle doesn't have.
    """
    return isinstance(error, EvenflowError) and type(error).__module__.partition(".")[0] == __name__.partition(".")[0]


def shown(error: BaseException) -> str:
    """Return type and text of any error, without secrets; a user's error may fail to give its text."""
    try:
        text = str(error)
    except BaseException as problem:  # noqa: BLE001 -- it is a user's method
        text = f"(no text: its __str__ raises {type(problem).__name__})"
    return f"{type(error).__name__}: {redacted(text)}" if text else type(error).__name__


def short(value: Any, limit: int = 500) -> str:
    """Return the `repr` of any value, without secrets and cut to `limit` characters; a user's value may fail to give it."""
    try:
        text = redacted(repr(value))
    except BaseException as error:  # noqa: BLE001 -- it is a user's method
        return f"a {type(value).__name__} (its __repr__ raises {type(error).__name__})"
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _portable(value: Any) -> Any:
    """Return the value if any process can unpickle it, otherwise its text."""
    try:
        return value if _is_plain(value) else short(value)
    except RecursionError:
        return short(value)


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(_is_plain(name) and _is_plain(item) for name, item in value.items())
    return isinstance(value, _PLAIN) and type(value).__module__ in ("builtins", "datetime", "decimal")
