"""Streams of updates, as distinguished from append-only streams.

In an append-only stream each row counts. In a stream of updates a later row replaces the earlier row with the same key, so an
operator that counts or joins its rows would count a key once for each update. Such operators read the rows with weights
(`weights.py`) if they can, and otherwise refuse updates when the flow is written.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Updates:
    """The updates of a stream. `key`: the columns that identify the row to replace, None if a function may have changed them.

    `origin`: the node that emits the updates. `weighed`: its rows can also be had with weights.
    """

    key: tuple[str, ...] | None
    origin: int | None = None
    weighed: bool = False

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
