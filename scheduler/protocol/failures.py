"""Failures of a job as plain data, so that they can be shown after the job has resumed.

>>> failure = failure_of(RecordError("parse", "int() refuses it", key="JFK", record={"n": "x"}), now=9.0)
>>> failure.operator, failure.key, failure.record, failure.text
('parse', "'JFK'", "{'n': 'x'}", 'int() refuses it')
"""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.errors import RecordError, short, shown
from ...state.errors import EvenflowError

REQUESTED = "requested"
"""The cause of a restart that no error caused."""

MOST = 500
"""Characters of a text that are kept."""


@dataclass(frozen=True, slots=True)
class Failure:
    """`time`: seconds since the epoch; `kind`: the error's class. `operator`, `key`, `record`: as text, empty where they aren't
    known.
    """

    time: float
    kind: str
    text: str
    operator: str = ""
    key: str = ""
    record: str = ""


def failure_of(error: BaseException, now: float) -> Failure:
    """Describe an error that occurred at `now`."""
    kind = type(error).__name__
    if not isinstance(error, RecordError):
        return Failure(now, kind, _cut(shown(error).removeprefix(f"{kind}: ")))
    key, record = ("" if value is None else short(value) for value in (error.key, error.record))
    return Failure(now, kind, _cut(error.problem), error.operator, key, record)


def cause_of(error: EvenflowError | None) -> str:
    """Return the name of an error's class, or of the class of evenflow's that a user's class derives from, so that there are few.

    None: a restart that was requested, for example by a migration.

    >>> cause_of(RecordError("parse", "no number")), cause_of(None)
    ('RecordError', 'requested')
    """
    if error is None:
        return REQUESTED
    own = EvenflowError.__module__.partition(".")[0]
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__.partition(".")[0] == own)


def _cut(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}..."
