"""Joins within windows, and `co_group`, row by row in plain Python: the rows of both streams, by key and window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from ...engine.operators.joins.co_group import CoGroup
from ...engine.operators.joins.window_join import WindowJoin
from ...engine.time.sessions import SessionWindows
from ...engine.time.windows import Window
from .joins import Timed, WindowOf, joined_in_windows
from .oracle import EPOCH, Record, Records, evaluate, key_of, letter_of, window_starts


@evaluate.register
def _(operator: WindowJoin, inputs: Sequence[Records]) -> Records:
    left, right = ([(record.row, record.time) for record in stream.items] for stream in inputs)
    windows = [window for _, window in windows_of(operator, left, right)]
    rows = joined_in_windows(operator, left, right, windows)
    return Records(sorted((Record(*row) for row in rows), key=lambda record: record.time or 0))


@evaluate.register
def _(operator: CoGroup, inputs: Sequence[Records]) -> Records:
    left, right = ([(record.row, record.time) for record in stream.items] for stream in inputs)
    items, refused = [], []
    for of, (start, end, time, *sides) in windows_of(operator, left, right):
        key, window = of[0] if len(of) == 1 else of, Window(EPOCH + timedelta(microseconds=start), EPOCH + timedelta(microseconds=end))
        rows = [[dict(row) for row, _ in sorted(side, key=_by_time_and_values)] for side in sides]
        try:
            items += [Record(row, time) for row in operator.function(key, window, *rows) or ()]
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            record = {"window_start": window.start, "window_end": window.end, "left": rows[0], "right": rows[1]}
            refused.append(letter_of(operator, key, record, time, error))
    return Records(items, operator.schema, refused)


def windows_of(operator: WindowJoin | CoGroup, left: Sequence[Timed], right: Sequence[Timed]) -> Iterator[tuple[tuple[Any, ...], WindowOf]]:
    """Return every key and its windows, in the form of `joined_in_windows`."""
    of_keys: dict[tuple[Any, ...], tuple[list[Timed], list[Timed]]] = {}
    for place, (rows, keys) in enumerate(((left, operator.left_keys), (right, operator.right_keys))):
        for number, row in enumerate(rows):
            key = key_of(row[0], keys)
            if None in key and isinstance(operator, WindowJoin):
                key = (*key, place, number)  # it equals no other
            of_keys.setdefault(key, ([], []))[place].append(row)
    for key, sides in of_keys.items():
        for start, end, time, last in _bounds(operator.windows, [row[1] or 0 for side in sides for row in side]):
            lefts, rights = ([row for row in side if start <= (row[1] or 0) <= last] for side in sides)
            yield key, (start, end, time, lefts, rights)


def _bounds(windows: Any, times: Iterable[int]) -> Iterator[tuple[int, int, int, int]]:
    """Return start, end, result time and last time of each window that contains some of a key's times."""
    if not isinstance(windows, SessionWindows):
        for start in sorted({start for time in times for start in window_starts(time, windows)}):
            end = start + windows.size
            yield start, end, end - 1, end - 1
        return
    session: list[int] = []
    for time in sorted(times):
        if session and time - session[-1] > windows.gap:
            yield session[0], session[-1] + windows.gap, session[-1] + windows.gap, session[-1]
            session = []
        session.append(time)
    if session:
        yield session[0], session[-1] + windows.gap, session[-1] + windows.gap, session[-1]


def _by_time_and_values(row: Timed) -> Any:
    return row[1], [(value is None, value if value is not None else 0) for value in row[0].values()]
