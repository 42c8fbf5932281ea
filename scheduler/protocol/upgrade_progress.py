"""The progress of the upgrade under way, as a job's status shows it.

>>> print(UpgradeProgress(0, CodeVersion(2), ("price", "total"), UpgradeState.WATCHING, watched=35.2, watch=120.0))
upgrade 0 to version 2 of `price`, `total`: watching the new code, 35 s of 120 s
>>> print(UpgradeProgress(0, CodeVersion(2), ("price",), UpgradeState.ROLLING, steps_left=3))
upgrade 0 to version 2 of `price`: moving all keys to the new code, 3 steps left
"""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.protocol.ids import CodeVersion
from ...engine.shown import Shown
from .reports import UpgradeState


@dataclass(frozen=True, slots=True)
class UpgradeProgress(Shown):
    """An upgrade under way: `number` and `version`, and the `operators` whose workers get the new code.

    `watched`: seconds for which both versions have run side by side, of `watch`; None outside of the watch. `steps_left`: steps that are
    not over. `problem`: why the new code is being taken back. `quiet`: the operators for whose first rows in the new code the watch is
    extended.
    """

    number: int
    version: CodeVersion
    operators: tuple[str, ...]
    state: UpgradeState
    watched: float | None = None
    watch: float = 0.0
    steps_left: int = 0
    problem: str | None = None
    quiet: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f"upgrade {self.number} to version {self.version} of {', '.join(f'`{name}`' for name in self.operators)}"
        return f"{what}: {self.state.value}, {self.details}"

    @property
    def details(self) -> str:
        """The time watched or the number of steps left, and the problem if there is one."""
        left = f"{self.steps_left} step{'' if self.steps_left == 1 else 's'} left"
        facts = left if self.watched is None else f"{self.watched:.0f} s of {self.watch:.0f} s"
        if self.quiet:
            facts += f", extended until there are rows for {', '.join(f'`{name}`' for name in self.quiet)}"
        return facts if self.problem is None else f"{facts}; {self.problem}"
