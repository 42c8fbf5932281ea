"""The bounds for an operator's number of workers in automatic scaling.

Invariant: 1 <= `least` <= `most`. Operators that run in the same workers keep to the bounds of each.

>>> WorkerBounds(1, 8).both(WorkerBounds(2)).both(WorkerBounds(fixed=True))
WorkerBounds(least=2, most=8, fixed=True)
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import FlowError


@dataclass(frozen=True, slots=True)
class WorkerBounds:
    """The bounds `least` and `most`; None for the job's settings. `fixed`: automatic scaling never changes the number.

    Raises FlowError for bounds that no number of workers satisfies.
    """

    least: int | None = None
    most: int | None = None
    fixed: bool = False

    def __post_init__(self) -> None:
        for bound in (self.least, self.most):
            if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or bound < 1):
                raise FlowError(f"{bound!r} can't bound the workers of an operator: it must be a whole number of at least 1")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise FlowError(f"no number of workers is at least {self.least} and at most {self.most}")

    def both(self, other: WorkerBounds) -> WorkerBounds:
        """Return the bounds that satisfy both."""
        leasts = [bound for bound in (self.least, other.least) if bound is not None]
        mosts = [bound for bound in (self.most, other.most) if bound is not None]
        return WorkerBounds(max(leasts, default=None), min(mosts, default=None), self.fixed or other.fixed)


UNBOUND = WorkerBounds()
"""The default: the job's settings apply."""
