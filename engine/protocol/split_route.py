"""The route of a hot key of a join that several workers share: rows of one side are dealt over them, rows of the other go to all.

Invariant: each dealt row is at one worker and each copied row at all of them, so each pair meets exactly once.

>>> SplitRoute(2, (0,), "left").with_worker(1)
SplitRoute(home=2, others=(0, 1), dealt='left')
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Dealt = Literal["left", "right"]
"""The side whose rows are dealt."""


@dataclass(frozen=True, slots=True)
class SplitRoute:
    """The workers of a split key. `home`: its owner, which gets its rows back when the split ends; `others`: in rising order."""

    home: int
    others: tuple[int, ...]
    dealt: Dealt

    def __post_init__(self) -> None:
        object.__setattr__(self, "others", tuple(sorted({*self.others} - {self.home})))

    @property
    def workers(self) -> tuple[int, ...]:
        """Return all workers that share the key, the home first."""
        return self.home, *self.others

    def with_worker(self, worker: int) -> SplitRoute:
        """Return the route with one more worker."""
        return replace(self, others=(*self.others, worker))

    def without(self, worker: int) -> SplitRoute:
        """Return the route without a worker."""
        return replace(self, others=tuple(other for other in self.others if other != worker))
