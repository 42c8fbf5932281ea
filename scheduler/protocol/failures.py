"""Failures of a job as plain data, so that they can be shown after the job has resumed.

>>> failure = failure_of(RecordError("parse", "int() refuses it", key="JFK", record={"n": "x"}), now=9.0)
>>> failure.operator, failure.key, failure.record, failure.text
('parse', "'JFK'", "{'n': 'x'}", 'int() refuses it')
"""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.errors import RecordError, short, shown

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


def _cut(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}..."
