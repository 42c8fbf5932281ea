"""What the reports of a job's checkpoints, migrations and scalings have in common.

Invariant: `seconds` is None until what is reported is over, and `problem` is None then if it has succeeded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ...engine.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Shown):
    """`number` counts the reports of one kind. `reason`: why it was begun, with whatever policy or request wanted it.

    `began_at`: seconds since the epoch, None while it waits; `seconds`: how long it took, None until it is over. `problem`: why it failed,
    ended early, or takes so long.
    """

    number: int
    state: StrEnum
    reason: str
    began_at: float | None = None
    seconds: float | None = None
    problem: str | None = None

    @property
    def over(self) -> bool:
        """Whether its state is final."""
        return self.seconds is not None

    @property
    def why(self) -> str:
        """The reason, and the problem if there is one."""
        return self.reason if self.problem is None else f"{self.reason}; {self.problem}"

    @property
    def _taken(self) -> str:
        return "" if self.seconds is None else f" in {self.seconds:.3f} s"
