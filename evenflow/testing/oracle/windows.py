"""Windows other than fixed ones, row by row in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ...engine.errors import FlowError
from ...engine.keys.unkeyed import shown
from ...engine.operators.aggregation.aggregate_rows import END_ROW, AggregateRows
from ...engine.operators.aggregation.aggregate_sessions import AggregateSessions
from ...engine.operators.aggregation.process_windows import ProcessWindows
from ...engine.time.sessions import SessionWindows
from ...engine.time.windows import Window
from .aggregates import aggregated
from .oracle import EPOCH, Record, Records, evaluate, key_of, letter_of, window_starts


@evaluate.register
def _(operator: AggregateSessions, inputs: Sequence[Records]) -> Records:
    items = []
    for session in sessions(inputs[0].items, shown(operator.keys), operator.windows.gap):
        start, end = session[0].time or 0, (session[-1].time or 0) + operator.windows.gap
        bounds = {"window_start": EPOCH + timedelta(microseconds=start), "window_end": EPOCH + timedelta(microseconds=end)}
        keys = {name: session[0].row[name] for name in shown(operator.keys)}
        items.append(Record({**keys, **bounds, **results(operator, session)}, end))
    return Records(sorted(items, key=lambda record: record.time or 0))


@evaluate.register
def _(operator: AggregateRows, inputs: Sequence[Records]) -> Records:
    items, seen = [], dict[tuple[Any, ...], list[Record]]()
    for record in inputs[0].items:
        of_key = seen.setdefault(key_of(record.row, shown(operator.keys)), [])
        of_key.append(record)
        if len(of_key) % operator.windows.every == 0:
            keys = {name: record.row[name] for name in shown(operator.keys)}
            window = results(operator, of_key[-operator.windows.size :])
            items.append(Record({**keys, END_ROW: len(of_key), **window}, record.time))
    return Records(items)


@evaluate.register
def _(operator: ProcessWindows, inputs: Sequence[Records]) -> Records:
    keys, windows = shown(operator.keys), operator.keeps.windows
    found: list[tuple[int, int, int, list[Record]]] = []
    if isinstance(windows, SessionWindows):
        for session in sessions(inputs[0].items, keys, windows.gap):
            end = (session[-1].time or 0) + windows.gap
            found.append((session[0].time or 0, end, end, session))
    else:
        groups: dict[tuple[int, tuple[Any, ...]], list[Record]] = {}
        for record in inputs[0].items:
            for start in window_starts(record.time or 0, windows):
                groups.setdefault((start, key_of(record.row, keys)), []).append(record)
        found = [(start, start + windows.size, start + windows.size - 1, records) for (start, _), records in groups.items()]
    items, refused = [], []
    for start, end, time, records in found:
        of = key_of(records[0].row, keys)
        key = None if not keys else of[0] if len(of) == 1 else of
        window = Window(EPOCH + timedelta(microseconds=start), EPOCH + timedelta(microseconds=end))
        rows = [dict(record.row) for record in sorted(records, key=_by_time_and_values)]
        try:
            items += [Record(row, time) for row in operator.function(key, window, rows) or ()]
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            row = {"window_start": window.start, "window_end": window.end, "rows": rows}
            refused.append(letter_of(operator, key, row, time, error))
    return Records(items, operator.schema, refused)


def _by_time_and_values(record: Record) -> Any:
    return record.time, [(value is None, value if value is not None else 0) for value in record.row.values()]


def sessions(records: Sequence[Record], keys: Sequence[str], gap: int) -> list[list[Record]]:
    """Return the records of each session of each key, in order of their time."""
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


def results(operator: AggregateSessions | AggregateRows, records: Sequence[Record]) -> dict[str, Any]:
    """Return the aggregates over these records."""
    pairs = [(record.row, record.time) for record in records]
    return {name: aggregated(function.beside(operator.keys), pairs) for name, function in operator.functions.items()}
