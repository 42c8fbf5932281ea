"""The key of windows without `key_by`: one constant for all rows.

Its column, of nulls, is in no row: `key_column` makes it where keys are read. So the operator is keyed like any other, and its
state moves and is saved like any other's. Users see no column.

>>> shown(("dest",)), shown(UNKEYED)
(('dest',), ())
"""

from __future__ import annotations

EVERYTHING = "__all"
"""The name of the column that is in no row."""

UNKEYED = (EVERYTHING,)


def shown(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the key columns of results."""
    return () if keys == UNKEYED else keys


def described(keys: tuple[str, ...]) -> str:
    """Return `by a, b`, or `over all rows` without keys."""
    return "over all rows" if keys == UNKEYED else f"by {', '.join(keys)}"
