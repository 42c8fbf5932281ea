"""Joins pair by pair, in plain Python: nested loops over whole inputs without late rows.

>>> left, right = [({"k": 1, "a": 2}, 0)], [({"k": 1, "b": 3}, 5), ({"k": 2, "b": 4}, 6)]
>>> joined(Join(("k",), ("k",), Between(0, 9), "full", "_right"), left, right)
[({'k': 1, 'a': 2, 'b': 3}, 5), ({'k': 2, 'a': None, 'b': 4}, 6)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cmp_to_key
from math import isnan
from typing import Any

from ...engine.joins.sides import LEFT, RIGHT, Side
from ...engine.joins.within import Always, Between
from ...engine.operators.joins.join import Join
from ...engine.operators.joins.join_asof import JoinAsof
from ...engine.operators.joins.window_join import WindowJoin
from ...engine.operators.two_inputs import TwoInputs

Row = dict[str, Any]
Timed = tuple[Row, int | None]
"""A row and its event time in microseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def joined(operator: Join, left: Sequence[Timed], right: Sequence[Timed]) -> list[Timed]:
    """Return the rows of a join by time bounds, or without."""
    shape = _Shape(operator, left, right)
    within = operator.within

    def match(a: Timed, b: Timed) -> bool:
        if not shape.same_key(a[0], b[0]):
            return False
        return isinstance(within, Always) or _time(a) + within.lower <= _time(b) <= _upper(within, a)

    def due_left(a: Timed) -> int | None:
        return a[1] if isinstance(within, Always) else max(_time(a), _upper(within, a))

    def due_right(b: Timed) -> int | None:
        return b[1] if isinstance(within, Always) else _time(b) + max(-within.lower, 0)

    results = list(_results(operator.how, shape, left, right, match))
    return [(row, _pair_time(a, b) if a is not None and b is not None else due_left(a) if a else due_right(b)) for row, a, b in results]  # type: ignore[arg-type]


WindowOf = tuple[int, int, int, list[Timed], list[Timed]]
"""The start and the end of a window of one key, the event time of its results, and its rows of left and of right."""


def joined_in_windows(operator: WindowJoin, left: Sequence[Timed], right: Sequence[Timed], windows: Sequence[WindowOf]) -> list[Timed]:
    """Return the rows of a join within windows, which have the rows of `left` and `right`."""
    shape = _Shape(operator, left, right)
    results: list[Timed] = []
    for start, end, time, lefts, rights in windows:
        bounds = {"window_start": _EPOCH + timedelta(microseconds=start), "window_end": _EPOCH + timedelta(microseconds=end)}
        rows = _results(operator.how, shape, lefts, rights, lambda a, b: shape.same_key(a[0], b[0]))
        results += [({**row, **bounds}, time) for row, _, _ in rows]
    return results


def joined_asof(operator: JoinAsof, left: Sequence[Timed], right: Sequence[Timed]) -> list[Timed]:
    """Return the rows of an as-of join."""
    shape = _Shape(operator, left, right)
    results: list[Timed] = []
    for row, time in left:
        age = operator.max_age
        fitting = [
            b for b in right if shape.same_key(row, b[0]) and _time(b) <= (time or 0) and (age is None or _time(b) >= (time or 0) - age)
        ]
        if fitting:
            newest = max(fitting, key=lambda b: (_time(b), cmp_to_key(_compared)(tuple(b[0].values()))))
            results.append((shape.pair(row, newest[0]), time))
        elif operator.how == "left":
            results.append((shape.pair(row, None), time))
    return results


class _Shape:
    """The keys and columns of a join's rows."""

    def __init__(self, operator: Join | WindowJoin | JoinAsof, left: Sequence[Timed], right: Sequence[Timed]) -> None:
        self._keys = operator.left_keys, operator.right_keys
        self._shared = {a for a, b in zip(*self._keys, strict=True) if a == b}
        self._left = _names(operator, LEFT, left)
        self._right = [name for name in _names(operator, RIGHT, right) if name not in self._shared]
        self._suffix = operator.suffix

    def same_key(self, left: Row, right: Row) -> bool:
        keys = [_ranked(left[name]) for name in self._keys[0]], [_ranked(right[name]) for name in self._keys[1]]
        return keys[0] == keys[1] and _ranked(None) not in keys[0]

    def pair(self, left: Row | None, right: Row | None) -> Row:
        row = dict(left) if left is not None else {name: right[name] if right and name in self._shared else None for name in self._left}
        for name in self._right:
            row[f"{name}{self._suffix}" if name in self._left else name] = None if right is None else right[name]
        return row if left is not None or self._left else dict(right or {})


def _names(operator: TwoInputs, side: Side, rows: Sequence[Timed]) -> list[str]:
    """List the columns of a side: those of the plan, or of its rows."""
    if side in operator.schemas:
        return list(operator.schemas[side].names)
    return list(rows[0][0]) if rows else []


def _results(
    how: str, shape: _Shape, left: Sequence[Timed], right: Sequence[Timed], match: Callable[[Timed, Timed], bool]
) -> Iterator[tuple[Row, Timed | None, Timed | None]]:
    """Yield the rows of a join, each with its input rows."""
    partners = [[b for b in right if match(a, b)] for a in left]
    for a, found in zip(left, partners, strict=True):
        if how in ("semi", "anti"):
            if bool(found) == (how == "semi"):
                yield dict(a[0]), a, None
            continue
        for b in found:
            yield shape.pair(a[0], b[0]), a, b
        if not found and how in ("left", "full"):
            yield shape.pair(a[0], None), a, None
    if how in ("right", "full"):
        for b in right:
            if not any(match(a, b) for a in left):
                yield shape.pair(None, b[0]), None, b


def _time(row: Timed) -> int:
    return row[1] or 0


def _upper(within: Between, left: Timed) -> int:
    if isinstance(within.upper, int):
        return _time(left) + within.upper
    at: datetime = left[0][within.upper]
    return ((at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def _pair_time(left: Timed, right: Timed) -> int | None:
    return None if left[1] is None or right[1] is None else max(left[1], right[1])


def _compared(one: tuple[Any, ...], other: tuple[Any, ...]) -> int:
    """Compare values one by one; a null is less than any other, and NaN larger than any number."""
    for a, b in zip(one, other, strict=True):
        ours, theirs = _ranked(a), _ranked(b)
        if ours != theirs:
            return -1 if ours < theirs else 1
    return 0


def _ranked(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    return (2, 0) if isinstance(value, float) and isnan(value) else (1, value)
