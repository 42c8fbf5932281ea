"""Checks that a key's rows arrive in the order of their source.

>>> check = in_order("seq", lanes=2)
>>> state, row = check(None, {"seq": 4})
>>> state, row = check(state, {"seq": 1})
>>> check(state, {"seq": 2})
Traceback (most recent call last):
    ...
ValueError: `seq` 2 came behind 4
"""

from __future__ import annotations

from typing import Any

from ..engine.operators.processing.stateful_map import StatefulFunction


def in_order(column: str, lanes: int = 1) -> StatefulFunction:
    """Make a function for `stateful_map` that passes rows on, and fails if `column` of a key does not rise.

    The source's workers are lanes of their own: rows with equal `column` modulo `lanes` must rise among themselves. `from_items` and
    `generate` distribute rows in this way, with as many lanes as workers. Rows that are distributed round robin on their way lose their
    order.
    """

    def check(state: Any, row: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        seen: list[int | None] = list(state) if state is not None else [None] * lanes
        value = row[column]
        before = seen[value % lanes]
        if before is not None and value <= before:
            raise ValueError(f"`{column}` {value} came behind {before}")
        seen[value % lanes] = value
        return seen, row

    return check
