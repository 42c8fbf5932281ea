"""What windows other than fixed ones give, row by row in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ..engine.errors import FlowError
from ..engine.keys.unkeyed import shown
from ..engine.operators.aggregate_sessions import AggregateSessions
from .oracle import EPOCH, Record, Records, evaluate, key_of
from .plain_aggregates import aggregated


@evaluate.register
def _(operator: AggregateSessions, inputs: Sequence[Records]) -> Records:
    items = []
    for session in sessions(inputs[0].items, shown(operator.keys), operator.windows.gap):
        start, end = session[0].time or 0, (session[-1].time or 0) + operator.windows.gap
        bounds = {"window_start": EPOCH + timedelta(microseconds=start), "window_end": EPOCH + timedelta(microseconds=end)}
        keys = {name: session[0].row[name] for name in shown(operator.keys)}
        items.append(Record({**keys, **bounds, **results(operator, session)}, end))
    return Records(sorted(items, key=lambda record: record.time or 0))


def sessions(records: Sequence[Record], keys: Sequence[str], gap: int) -> list[list[Record]]:
    """The records of each session of each key, in order of their time."""
    by_key: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        if record.time is None:
            raise FlowError("windows need event time: give the source event_time=")
        by_key.setdefault(key_of(record.row, keys), []).append(record)
    found: list[list[Record]] = []
    for of_key in by_key.values():
        last = None
        for record in sorted(of_key, key=lambda record: record.time or 0):
            time = record.time or 0
            if last is None or time - last > gap:
                found.append([])
            found[-1].append(record)
            last = time
    return found


def results(operator: AggregateSessions, records: Sequence[Record]) -> dict[str, Any]:
    """The aggregates over these records."""
    pairs = [(record.row, record.time) for record in records]
    return {name: aggregated(function.beside(operator.keys), pairs) for name, function in operator.functions.items()}
