"""Operations: changes of a running job that take time, such as a migration, a rescale or a scaling.

Invariant: at most one operation of a kind is under way, and it is the newest; an operation that is over doesn't change.

>>> class Phase(StrEnum):
...     RUNNING = "running"
...     DONE = "done"
>>> history = Operations[Operation[Phase]]()
>>> history.append(Operation(number=0, state=Phase.RUNNING, reason="by hand", begun=1.0))
>>> history.busy
True
>>> history[0].end(Phase.DONE, 3.5)
>>> history.busy, history[0].seconds, history[0].succeeded
(False, 2.5, True)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from .newest import Newest

S = TypeVar("S", bound=StrEnum)


@dataclass(slots=True, kw_only=True)
class Operation(Generic[S]):
    """A change that is under way, or over.

    `number`: counts the operations of one kind. `reason`: the request or policy that began it. `begun`, `ended`: seconds since
    the epoch, None before. `problem`: why it failed or ended early.
    """

    number: int
    state: S
    reason: str
    begun: float | None = None
    ended: float | None = None
    problem: str | None = None

    @property
    def over(self) -> bool:
        """True if the operation has ended."""
        return self.ended is not None

    @property
    def succeeded(self) -> bool:
        """True if the operation has ended as it should: its state is "done"."""
        return self.over and self.state.value == "done"

    @property
    def seconds(self) -> float | None:
        """The duration, None until the operation is over, and if it ended before it began."""
        return None if self.begun is None or self.ended is None else self.ended - self.begun

    def end(self, state: S, now: float, problem: str | None = None) -> None:
        """End the operation in a final state."""
        self.state, self.ended, self.problem = state, now, problem


Op = TypeVar("Op", bound=Operation[Any])


class Operations(Newest[Op]):
    """The newest operations of one kind, oldest first."""

    @property
    def current(self) -> Op | None:
        """The operation under way."""
        newest = self.newest
        return newest if newest is not None and not newest.over else None

    @property
    def busy(self) -> bool:
        """True if an operation is under way."""
        return self.current is not None
