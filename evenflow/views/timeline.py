"""The decisions of a job as entries of a timeline: who decided what and why, the expected effect, and the effect.

Decisions to change nothing are entries too. Those of a minute share one entry, which counts their reasons.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from ..balancer.verdict import Verdict
from ..scheduler.policies.controller import DecisionRecord
from ..scheduler.policies.nodes.placement import short
from ..scheduler.protocol.reports import (
    MigrationReport,
    NodeScalingReport,
    OperationReport,
    ScalingReport,
    UpgradeReport,
    UpgradeState,
)
from ..scheduler.protocol.view import BalanceObservation, JobView, StageView

Who = Literal["balancer", "autoscaler", "person", "job", "upgrade"]
Answer = Literal["yes", "no", "failed"]

BY_HAND = "by hand"

FOR_POLICY = ", for "
"""Marks the reason of a rebalance that a scaling policy asked for."""

FOR_UPGRADE = re.compile(r"upgrade \d+")
"""The origin of a change that is a step of an upgrade."""

TOGETHER = 60.0
"""Seconds for which looks that change nothing share one entry."""

SETTLED = 12
"""Seconds after the end of a change until its effect is measured."""

MOST = 300
"""Entries that are kept."""


@dataclass(slots=True)
class Entry:
    """A decision. `begin`, `end`: seconds since the epoch, `end` None while it is in progress. `keys`: hot keys that moved individually,
    with their workers before and after.
    """

    id: str
    begin: float
    end: float | None
    who: Who
    answer: Answer
    stage: str
    what: str
    reason: str
    expected: str = ""
    effect: str = ""
    keys: tuple[tuple[str, int, int], ...] = ()


@dataclass(slots=True)
class _Refusal:
    """An entry about changing nothing, with the number of times each reason was given."""

    entry: Entry
    reasons: Counter[str] = field(default_factory=Counter)


Measure = Callable[[str, float, float], str]
"""Describes the effect of a change of a stage that lasted from the first time to the second."""


class Timeline:
    """The decisions of one job. `entries` by id, the oldest first."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self._refusals: dict[str, _Refusal] = {}
        """The newest entry about changing nothing, by stage; the autoscaler's has no stage."""
        self._looks: dict[str, BalanceObservation] = {}
        self._policy_looked = 0.0
        self._unmeasured: set[str] = set()
        """Entries whose effect is still to be measured."""
        self._run, self._seconds = 0, 0.0
        self._attempt: tuple[int, int] | None = None

    def add(self, view: JobView, measure: Measure) -> list[Entry]:
        """Add a view; return the entries that are new or have changed."""
        before = {name: (entry.end, entry.answer, entry.effect, entry.what) for name, entry in self.entries.items()}
        if view.status.running_seconds < self._seconds:
            self._run += 1
        self._recovery(view)
        self._seconds = view.status.running_seconds
        for stage in view.stages:
            self._look(stage, view.now)
        self._policy_look(view)
        for migration in view.migrations:
            self._migration(migration)
        for scaling in view.scalings:
            self._scaling(scaling)
        for decision in view.decisions:
            self._decision(decision)
        for nodes in view.node_scalings:
            self._node_scaling(nodes)
        for upgrade in view.upgrades:
            self._upgrade(upgrade)
        self._measure_effects(view.now, measure)
        self.entries = dict(sorted(self.entries.items(), key=lambda item: item[1].begin)[-MOST:])
        return [e for name, e in self.entries.items() if before.get(name) != (e.end, e.answer, e.effect, e.what)]

    def _recovery(self, view: JobView) -> None:
        attempt = self._run, int(view.status.attempt)
        if self._attempt is not None and attempt[0] == self._attempt[0] and attempt[1] > self._attempt[1]:
            why = "a process was lost, an operator failed, or keys moved by the strategy restart"
            self._put(Entry(f"{self._run}.r{attempt[1]}", view.now, view.now, "job", "yes", "", "restored its last checkpoint", why))
        self._attempt = attempt

    def _look(self, stage: StageView, now: float) -> None:
        look = stage.observation
        if look is None or look == self._looks.get(stage.name):
            return
        self._looks[stage.name] = look
        if look.verdict is not Verdict.PLANNED:
            sizes = f"max / mean {look.imbalance:.2f}, floor {look.floor:.2f}"
            self._no(stage.name, "balancer", f"{stage.balancer} moves nothing", look.verdict.value, sizes, now)

    def _policy_look(self, view: JobView) -> None:
        look = view.observation
        if look is None or look.decided.changes or look.time == self._policy_looked:
            return
        self._policy_looked = look.time
        why = look.decided.reason or "every operator has the workers it needs"
        self._no("", "autoscaler", f"{look.policy} scales nothing", why, look.saw, look.time)

    def _no(self, stage: str, who: Who, what: str, why: str, saw: str, now: float) -> None:
        """Add a look that changes nothing to the entry of the last minute's looks, or begin another."""
        refusal = self._refusals.get(stage)
        if refusal is None or now - refusal.entry.begin > TOGETHER:
            entry = Entry(f"{self._run}.{who}.{stage}.{now:.1f}", now, now, who, "no", stage, what, "")
            refusal = self._refusals[stage] = _Refusal(entry)
            self._put(entry)
        refusal.reasons[why] += 1
        entry = refusal.entry
        entry.end, entry.expected = now, f"most recently {saw}"
        entry.reason = "; ".join(f"{reason} ({_counted(looks, 'look')})" for reason, looks in refusal.reasons.most_common())

    def _migration(self, report: MigrationReport) -> None:
        plan = report.plan
        what = f"moves {_counted(report.groups, 'key group')}"
        what += f" and {_counted(report.routed_keys, 'single key')}" if report.routed_keys else ""
        what += f" ({report.keys_moved:,} keys, {report.state_bytes:,} bytes)" if report.over else ""
        entry = self._report("m", report, report.operator, f"{what} by {report.strategy}")
        if entry is not None and plan is None and entry.who == "balancer":
            entry.who = "autoscaler"  # a part of its scaling
        if entry is not None and plan is not None:
            after = f" → {plan.imbalance_after:.2f}" if not plan.splits else ""
            entry.expected = f"max / mean {plan.imbalance_before:.2f}{after}, floor {plan.floor:.2f}"
            entry.keys = tuple(
                (str(move.key), move.source, move.target) for move in plan.moves if move.group is None and move.source != move.target
            )

    def _scaling(self, report: ScalingReport) -> None:
        entry = self._report("s", report, report.operator, f"from {report.before} to {_counted(report.after, 'worker')}")
        if entry is not None and entry.who == "balancer":
            entry.who = "autoscaler"

    def _node_scaling(self, report: NodeScalingReport) -> None:
        if report.removed is not None:
            what = f"gives back node {short(report.removed)}"
        else:
            what = f"adds node {', '.join(map(short, report.added))}" if report.added else "adds no node"
        entry = self._report("n", report, "", f"{what}: {'; '.join(report.changes)}")
        if entry is not None:
            entry.who = "person"  # a policy's nodes are part of its decision

    def _upgrade(self, report: UpgradeReport) -> None:
        what = f"upgrades {', '.join(report.operators)} to version {report.version}"
        what += f": {report.state.value} ({report.keys_moved:,} keys, {report.state_bytes:,} bytes moved)" if report.over else ""
        entry = self._report("u", report, "", what)
        if entry is not None:
            entry.who = "person"
            entry.expected = f"{report.canary:.0%} of the load first" if report.canary else ""
            entry.answer = "failed" if report.over and report.state is not UpgradeState.DONE else "yes"

    def _decision(self, record: DecisionRecord) -> None:
        failed = record.done.startswith("refused")
        advised = record.done.startswith("advised")
        name = f"{self._run}.d{record.time:.3f}"
        self._refusals.pop("", None)
        entry = Entry(name, record.time, None, "autoscaler", "failed" if failed else "no" if advised else "yes", "", record.changes, "")
        entry.reason, entry.expected, entry.effect = f"{record.policy}: {record.decided.reason}", record.saw, record.done
        entry.end = record.time
        self._put(entry)

    def _report(self, kind: str, report: OperationReport, stage: str, what: str) -> Entry | None:
        """Add or update the entry of a change; None while it waits."""
        if report.began_at is None:
            return None
        name = f"{self._run}.{kind}{report.number}"
        known = self.entries.get(name)
        origin = report.reason.partition(":")[0]
        who: Who = "person" if BY_HAND in origin else "autoscaler" if FOR_POLICY in origin else "balancer"
        who = "upgrade" if FOR_UPGRADE.fullmatch(origin) else who
        if known is None:
            known = Entry(name, report.began_at, None, who, "yes", stage, what, report.why)
            self._put(known)
            self._refusals.pop(stage, None)
        known.what, known.reason = what, report.why
        if report.seconds is not None and known.end is None:
            known.end = report.began_at + report.seconds
            known.answer = "failed" if report.problem is not None else "yes"
            if kind != "n":
                self._unmeasured.add(name)
        return known

    def _measure_effects(self, now: float, measure: Measure) -> None:
        for name in sorted(self._unmeasured):
            entry = self.entries.get(name)
            if entry is None:
                self._unmeasured.discard(name)
            elif entry.end is not None and now > entry.end + SETTLED:
                entry.effect = measure(entry.stage, entry.begin, entry.end)
                self._unmeasured.discard(name)

    def _put(self, entry: Entry) -> None:
        self.entries[entry.id] = entry


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
