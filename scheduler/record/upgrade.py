"""The record of an upgrade: a change of the code of a running job, its steps and what its two versions did side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ...engine.plan.physical import Plan
from ...engine.plan.recoded import codes_of, recoded
from ...engine.plan.rescale import NewCode
from ...engine.protocol.ids import CheckpointNumber, CodeVersion, WorkerId, worker_id
from ...engine.protocol.routing import RoutingTable
from ..policies.canary import StageComparison
from ..protocol.effects import RememberCode
from ..protocol.reports import UpgradeReport, UpgradeState
from ..protocol.upgrade_options import UpgradeOptions
from ..protocol.upgrade_progress import UpgradeProgress
from .migrations import Migration
from .operation import Operation
from .rescaling import Rescaling


class Task(StrEnum):
    """A kind of step of an upgrade."""

    SAVE = "take a checkpoint"
    PREPARE = "start processes ahead"
    JOIN = "start workers"
    CANARY = "move the canary's keys"
    WATCH = "watch"
    DECIDE = "decide for the new code"
    EMPTY = "move a worker's keys"
    REPLACE = "replace workers"
    CLEAR = "move keys away from the additional workers"
    UNDO = "undo the canary"
    RETURN = "move the canary's keys back"
    GO_BACK = "go back to the newest checkpoint"
    LEAVE = "end the additional workers"


@dataclass(frozen=True, slots=True)
class Work:
    """A step of an upgrade: its kind, and its stage, and the indexes of its workers, if it is about some."""

    task: Task
    stage: str = ""
    indexes: tuple[int, ...] = ()


@dataclass(slots=True)
class Upgrade(Operation[UpgradeState]):
    """An upgrade to `codes`, by stage, sources first.

    `before`: the plan when it began. `readable`: the old code can restore state that the new code has written. `work`: the steps that are
    left. `prepares_until`: when the wait for processes that start ahead ends at the latest, None if none do. `measured_until`: the
    same for the wait for the load of key groups. `quiet`: the stages whose
    canary has had no rows yet. `decided`: the new code has passed its watch. `rolls_back`: the new code is being taken back, because of
    `trouble`.
    """

    codes: Mapping[str, NewCode]
    before: Plan
    tables: Mapping[str, RoutingTable]
    options: UpgradeOptions
    readable: bool
    version: CodeVersion
    work: deque[Work] = field(default_factory=deque)
    step: Migration | Rescaling | None = None
    checkpoint: CheckpointNumber | None = None
    prepares_until: float | None = None
    measured_until: float | None = None
    watch_from: float | None = None
    quiet: set[str] = field(default_factory=set)
    decided: bool = False
    rolls_back: bool = False
    trouble: str | None = None
    keys_moved: int = 0
    state_bytes: int = 0
    compared: tuple[StageComparison, ...] = ()

    @property
    def goes_on(self) -> bool:
        """True if the job runs the new code after a failure, False if it runs the old code again."""
        return self.decided and (self.options.on_failure == "continue" or not self.readable)

    def additional(self, stage: str) -> int:
        """Return the number of additional workers that a stage gets."""
        return max(1, round(self.options.canary * self.before.stage_of(stage).parallelism))

    @property
    def joining(self) -> tuple[WorkerId, ...]:
        """The workers that are still to join, in order, without those that need an environment of their own."""
        found: list[WorkerId] = []
        for work in self.work:
            if work.task not in (Task.JOIN, Task.REPLACE) or self.codes[work.stage].environment is not None:
                continue
            usual = self.before.stage_of(work.stage).parallelism
            indexes = work.indexes if work.task is Task.REPLACE else range(usual, usual + self.additional(work.stage))
            found += [worker_id(work.stage, index, self.version) for index in indexes]
        return tuple(found)

    def plan_after(self, *, new: bool) -> Plan:
        """Return the plan with as many workers as before, which all run the new code, or all the old."""
        return recoded(self.before, self.codes) if new else self.before

    def remembered(self, *, new: bool, over: bool) -> RememberCode:
        """Return what a coordinator that takes over must know. `over`: the additional workers have left."""
        parallelism = {} if over else {stage: self.before.stage_of(stage).parallelism for stage in self.codes}
        return RememberCode(codes_of(self.plan_after(new=new)), parallelism)

    def progress(self, now: float) -> UpgradeProgress:
        """Return the progress of the upgrade under way at time `now`, as `job.status()` shows it."""
        state = UpgradeState.RETURNING if self.rolls_back else self.state
        watched, quiet = None, tuple[str, ...]()
        if state is UpgradeState.WATCHING:
            watched = 0.0 if self.watch_from is None else now - self.watch_from
            if watched > self.options.watch:
                quiet = tuple(name for name in self.codes if name in self.quiet)
            watched = watched if quiet else min(watched, self.options.watch)
        left = len(self.work) + (self.step is not None)
        facts = self.number, self.version, tuple(self.codes), state
        return UpgradeProgress(*facts, watched, self.options.watch, left, self.trouble, quiet)

    def report(self) -> UpgradeReport:
        """Return the upgrade as `job.upgrades()` shows it."""
        return UpgradeReport(
            number=self.number,
            state=self.state,
            reason=self.reason,
            began_at=self.begun,
            seconds=self.seconds,
            problem=self.problem,
            version=self.version,
            operators=tuple(self.codes),
            canary=self.options.canary,
            keys_moved=self.keys_moved,
            state_bytes=self.state_bytes,
            compared=self.compared,
        )
