"""How many workers an operator may be given automatically.

Invariant: `least` is at least 1 and at most `most`; operators that run in the same workers are all within their bounds.

>>> WorkerBounds(1, 8).both(WorkerBounds(2)).both(WorkerBounds(fixed=True))
WorkerBounds(least=2, most=8, fixed=True)
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import FlowError


@dataclass(frozen=True, slots=True)
class WorkerBounds:
    """`least`, `most`: None where the job's settings say. `fixed`: those that it has, however many, are not changed automatically.

    Raises FlowError for bounds between which there is no number of workers.
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
        """What lies within both."""
        leasts = [bound for bound in (self.least, other.least) if bound is not None]
        mosts = [bound for bound in (self.most, other.most) if bound is not None]
        return WorkerBounds(max(leasts, default=None), min(mosts, default=None), self.fixed or other.fixed)


UNBOUND = WorkerBounds()
"""What an operator has of which nothing was said."""
