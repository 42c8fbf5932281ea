"""Count windows: the last rows of a key, whatever their times.

Rows count in order of arrival. A window is cut into panes, like windows of time: stretches of rows, each combined once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

from ..errors import FlowError
from .windows import MOST_PANES


@dataclass(frozen=True, slots=True)
class RowWindows:
    """A window of a key's last `size` rows after every `every` rows; the first windows are shorter."""

    size: int
    every: int

    @property
    def pane(self) -> int:
        """Return the number of rows in a pane."""
        return gcd(self.size, self.every)

    def describe(self) -> str:
        return f"windows of {self.size:,} rows" if self.size == self.every else f"windows of {self.size:,} rows every {self.every:,}"


def rows(size: int, every: int | None = None) -> RowWindows:
    """Return windows of the last `size` rows of a key: one every `every` rows, by default every `size`.

    The first windows have fewer than `size` rows if `every` is less. Rows after a key's last complete window give no result.
    The rows of a window depend on the order in which a key's rows arrive. Raises FlowError for numbers that are not whole and
    above zero, for gaps between windows (`every` > `size`), and for more than 100,000 panes (of the greatest common divisor)
    in a window.

    >>> rows(10_000, every=1_000).pane
    1000
    """
    windows = RowWindows(_whole(size, "size"), _whole(size if every is None else every, "every"))
    if windows.every > windows.size:
        raise FlowError(f"rows({size!r}, every={every!r}) would leave gaps between the windows: make them at least `every` rows long")
    if (panes := windows.size // windows.pane) > MOST_PANES:
        raise FlowError(
            f"rows({size!r}, every={every!r}) would have {panes:,} panes of {windows.pane:,} rows in a window, and the most is "
            f"{MOST_PANES:,}: use a longer slide, or one that divides their size"
        )
    return windows


def _whole(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise FlowError(f"rows({what}={value!r}): expected a whole number of rows, at least 1")
    return value
