"""Tells what is new in views that repeat it.

Invariant: what each view repeats from the one before is new once; what a view leaves out is forgotten.

>>> once = Once()
>>> for view in (["a", "b"], ["b", "c"]):
...     once.begin()
...     print([name for name in view if once.is_new(name)])
['a', 'b']
['c']
"""

from __future__ import annotations

from collections.abc import Hashable

from ...scheduler.protocol.reports import OperationReport


class Once:
    """`begin` comes before each view, then `is_new` for all that it has."""

    def __init__(self) -> None:
        self._before: set[Hashable] = set()
        self._now: set[Hashable] = set()

    def begin(self) -> None:
        """Another view."""
        self._before, self._now = self._now, set()

    def is_new(self, *name: Hashable) -> bool:
        """Whether the view before didn't have what is named so."""
        self._now.add(name)
        return name not in self._before

    def is_newly_over(self, kind: str, report: OperationReport) -> bool:
        """Whether a report is over, and was not in the view before."""
        return report.over and self.is_new(kind, report.number, report.began_at)
