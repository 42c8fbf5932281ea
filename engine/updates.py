"""Streams of updates, as distinguished from append-only streams.

In an append-only stream each row counts. In a stream of updates a later row replaces the earlier row with the same key, so an
operator that counts or joins its rows would count a key once for each update. Such operators read the rows with weights
(`weights.py`) if they can, and otherwise refuse updates when the flow is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .keys.unkeyed import shown


@dataclass(frozen=True, slots=True)
class Updates:
    """The updates of a stream. `key`: the columns that identify the row to replace, None if a function may have changed them.

    `origin`: the node that emits the updates. `weighed`: its rows can also be had with weights. `deletions`: rows are deleted, too,
    as in a database table, and only rows with weights tell it: other readers are refused.
    """

    key: tuple[str, ...] | None
    origin: int | None = None
    weighed: bool = False
    deletions: bool = False

    def confused_by(self, key: Sequence[str], *, exact: bool = False) -> str | None:
        """Return why rows that these columns identify can't be kept apart, or None if they can. `exact`: no other column may identify them.

        A key that a function may have changed is not checked.
        """
        found = shown(self.key or ())
        groups, keys = set(found), set(key)
        if not groups or (groups == keys if exact else groups <= keys):
            return None
        return (
            f"its rows are updates by {', '.join(found)}, and key= has {', '.join(key)}, by which they can't be told apart; "
            f"write key={list(found)}"
        )

    def describe(self) -> str:
        """Return a few words for `explain()`."""
        if self.key is None:
            return "updates"
        return f"updates of {', '.join(self.key) or 'one row'}"


def kind_of(updates: Updates | None) -> str:
    """Return the kind of a stream, for `explain()`.

    >>> kind_of(None), kind_of(Updates(("user", "city")))
    ('append-only', 'updates of user, city')
    """
    return "append-only" if updates is None else updates.describe()
