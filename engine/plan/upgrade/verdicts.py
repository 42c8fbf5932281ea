"""The result of comparing two plans: a verdict for each operator, and the stages whose workers must be replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ...shown import Shown


class Verdict(StrEnum):
    """The fate of an operator in an upgrade.

    UNCHANGED: it is the same. CODE, SETTINGS: its new code or settings can replace the old ones while the job runs. MIGRATED: so they
    can, and the user's function converts its state. RESTART: the job must be stopped and started again.
    """

    UNCHANGED = "unchanged"
    CODE = "code"
    SETTINGS = "settings"
    MIGRATED = "migrated"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class OperatorChange:
    """The verdict about an operator of a stage; `why` is empty for an unchanged one."""

    operator: str
    stage: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class UpgradePlan(Shown):
    """The difference of two plans. `operators`: those of the new plan, stage by stage, then those that are gone.

    `changed_stages`: those whose workers must be replaced, in topological order. `one_way`: those of them whose new state the old code
    can't read, with the reason. The number of workers is not compared: a running job keeps its own. Nor are the job's settings.
    """

    operators: tuple[OperatorChange, ...]
    changed_stages: tuple[str, ...]
    one_way: Mapping[str, str] = field(default_factory=dict)

    @property
    def needs_restart(self) -> bool:
        """True if an operator can't be replaced while the job runs."""
        return any(change.verdict is Verdict.RESTART for change in self.operators)

    def can_go_back(self, stage: str) -> bool:
        """Return True if the old code of a changed stage can read the state that the new code writes."""
        return stage not in self.one_way

    def table(self) -> str:
        """Return the verdicts as a table of text, and below it what an upgrade does."""
        rows = [("operator", "stage", "verdict", "why")]
        rows += [(change.operator, change.stage, change.verdict.value, change.why) for change in self.operators]
        return "\n".join([*_aligned(rows), self.summary()])

    def summary(self) -> str:
        """Return one sentence about what an upgrade does."""
        if self.needs_restart:
            return "A live upgrade isn't possible: stop the job with a savepoint, and start the new program from it."
        if not self.changed_stages:
            return "Nothing changed."
        back = f" There is no way back for {', '.join(self.one_way)}." if self.one_way else ""
        return f"A live upgrade replaces the workers of {', '.join(self.changed_stages)}.{back}"

    def __str__(self) -> str:
        return self.table()


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows)
