"""`with_time` and `with_arrival_time`, row by row: teaches the oracle the operators."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ...engine.errors import FlowError
from ...engine.operators.rows.with_arrival_time import WithArrivalTime
from ...engine.operators.rows.with_time import WithTime
from .oracle import EPOCH, Record, Records, evaluate, letter_of

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0.001}


@evaluate.register
def _(operator: WithTime, inputs: Sequence[Records]) -> Records:
    items, refused = list[Record](), list[Record]()
    for record in inputs[0].items:
        try:
            value = record.row[operator.time] if isinstance(operator.time, str) else operator.time(dict(record.row))
            items.append(Record(record.row, _time(value, operator.unit)))
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            refused.append(letter_of(operator, None, record.row, record.time, error))
    return Records(items, inputs[0].schema, refused)


@evaluate.register
def _(_operator: WithArrivalTime, inputs: Sequence[Records]) -> Records:
    """All rows come at once here: results that depend on when rows come agree with no oracle."""
    return Records([Record(record.row, 0) for record in inputs[0].items], inputs[0].schema)


def _time(value: Any, unit: str) -> int:
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (aware - EPOCH) // timedelta(microseconds=1)
    if not isinstance(value, (int, float)):
        raise FlowError(f"{value!r} is no time")
    return round(value * _MICROSECONDS[unit]) if unit != "ns" else int(value) // 1_000
