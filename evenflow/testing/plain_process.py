"""What a `KeyedFunction` gives, row by row in plain Python: a record per key in a dict, and timers found by looking at all of them.

Before each row the watermark is as high as it can be, the earliest time of the rows that are still to come. A function whose results
depend on how far the watermark is behind that agrees with no oracle.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from ..engine.elements import MAX_TIME
from ..engine.key_record import KeyRecord
from ..engine.keyed_function import KeyContext, KeyedFunction
from ..engine.timers import Timers

Timed = tuple[Any, int | None]
"""A row, and its event time."""


def processed(function: KeyedFunction, rows: Sequence[tuple[Any, dict[str, Any], int | None]]) -> list[Timed]:
    """What `function` yields for (key, row, event time)."""
    function, context, records, results = copy.copy(function), KeyContext(Timers()), dict[Any, KeyRecord](), list[Timed]()
    for (key, row, time), watermark in zip(rows, _watermarks([time for _, _, time in rows]), strict=True):
        results += _fired(function, context, records, watermark)
        record = records.setdefault(key, KeyRecord())
        _bind(function, context, key, record, time)
        results += [(result, time) for result in function.on_row(key, dict(row), context) or ()]
    return [*results, *_fired(function, context, records, MAX_TIME)]


def _watermarks(times: Sequence[int | None]) -> list[int]:
    """Before each row the earliest time of it and those behind it."""
    watermarks, earliest = [], MAX_TIME
    for time in reversed(times):
        earliest = min(earliest, time if time is not None else earliest)
        watermarks.append(earliest)
    return watermarks[::-1]


def _fired(function: KeyedFunction, context: KeyContext, records: dict[Any, KeyRecord], watermark: int) -> Iterator[Timed]:
    """What the timers yield that the watermark has passed, the earliest first."""
    context.watermark = watermark
    while due := [(min(record.timers), place, key) for place, (key, record) in enumerate(records.items()) if record.timers]:
        at, _, key = min(due, key=lambda entry: entry[:2])
        if at > watermark:
            return
        records[key].timers.discard(at)
        _bind(function, context, key, records[key], at)
        yield from [(result, at) for result in function.on_timer(key, at, context) or ()]


def _bind(function: KeyedFunction, context: KeyContext, key: Any, record: KeyRecord, time: int | None) -> None:
    function.current = record, time
    context.bind(key, record, time)
