"""The decision when to balance: a state machine over the windows of one operator, without a clock.

Invariants: a plan needs `windows` uneven windows in a row, more than chance explains with the records in them, and `cooldown` windows
since the previous plan. Groups and keys that
moved count with their old load at their new worker until they work there, so that the trigger doesn't react twice to one hotspot.
They stay there for `rest` windows unless their load shifts. A split key stays split until that has been needless for `rest`
windows in a row; then it is gathered, even if the load is even. After a plan that hardly had its expected effect, because noise or
a passing load led to it, the next one needs twice as many uneven windows in a row.

>>> from .snapshot import GroupLoad
>>> trigger = Trigger(Hotspot(), TriggerSettings(windows=2))
>>> snapshot = LoadSnapshot(2, [GroupLoad(0, 0, 1.0), GroupLoad(1, 0, 1.0)])
>>> trigger.observe(snapshot) is None
True
>>> [(move.group, move.target) for move in trigger.observe(snapshot).moves]
[(0, 1)]
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..engine.errors import FlowError
from ..engine.protocol.split_route import Dealt
from ..state.hashing import MAX_GROUPS
from .base import Balancer, Limits
from .hotspot import Hotspot
from .plan import BalancePlan
from .snapshot import LoadSnapshot, SplitKey
from .verdict import Verdict

CHANCE = 5.0
"""Standard errors by which a load must exceed the threshold: with thousands of looks at many workers, 3 happen by chance."""

MOST_WINDOWS = 20
"""The longest row of uneven windows that is needed and averaged to tell a skew from chance, if `windows` is less."""

KEPT = 0.75
"""The part of the expected effect that a plan must have had, to count as a good one."""


@dataclass(frozen=True, slots=True)
class TriggerSettings:
    """The conditions for acting, and the limits of a plan.

    `threshold`: uneven is max / mean load over `threshold * floor`. `windows`: the number of uneven windows in a row that lead to
    a plan, made from their mean; more if they have few records. `cooldown`: windows from one plan to the next. `rest`: windows in
    which a moved group or key doesn't move again, unless its load changed by the factor `shift`. `least_gain`: a plan that lowers
    max / mean by less is not worth its moves. `tolerance`, `max_bytes`, `split_keys`: as in `Limits`, for each plan. Raises
    FlowError for invalid values.
    """

    threshold: float = 1.2
    windows: int = 3
    cooldown: int = 3
    rest: int = 10
    shift: float = 1.5
    least_gain: float = 0.15
    tolerance: float = 1.05
    max_bytes: int | None = None
    split_keys: bool = True

    def __post_init__(self) -> None:
        Limits(self.tolerance, self.max_bytes)
        if not self.threshold >= self.tolerance:
            raise FlowError(
                f"threshold is {self.threshold}, below the tolerance of {self.tolerance}: a load that is good enough would count as uneven"
            )
        for name, least in (("windows", 1), ("cooldown", 0), ("rest", 0), ("shift", 1), ("least_gain", 0)):
            if not getattr(self, name) >= least:
                raise FlowError(f"{name} is {getattr(self, name)}: it must be {least} or more")


@dataclass(frozen=True, slots=True)
class _Moved:
    """A moved group or key: its new worker, its load, and the window."""

    target: int
    load: float
    window: int


@dataclass(slots=True)
class _Memory:
    """Recent moves, by key group and by key; `under_way`: True until the last plan has taken effect."""

    under_way: bool = False
    groups: dict[int, _Moved] = field(default_factory=dict)
    keys: dict[Hashable, _Moved] = field(default_factory=dict)


_Route = tuple[Hashable, tuple[int, ...], Dealt]
"""A split key, the workers that share it, its home first, and its dealt side."""


@dataclass(slots=True)
class _Promise:
    """The expected effect of the last plan: max / mean of at most `most`; `seen`: the windows since the plan took effect."""

    most: float
    seen: list[LoadSnapshot] = field(default_factory=list)


class Trigger:
    """The trigger of one operator. `observe` takes one snapshot per window; `verdict` is its judgement of the newest."""

    def __init__(self, balancer: Balancer | None = None, settings: TriggerSettings = TriggerSettings()) -> None:
        self.verdict = Verdict.EVEN
        self._balancer, self._settings = balancer or Hotspot(), settings
        self._recent: list[LoadSnapshot] = []
        self._records: list[float] = []
        self._window = 0
        self._uneven = 0
        self._acted: int | None = None
        self._moved = _Memory()
        self._awaited: frozenset[_Route] | None = None
        self._needless: dict[Hashable, int] = {}
        self._promise: _Promise | None = None
        self._needed = settings.windows
        """The number of uneven windows in a row that the next plan needs."""

    def observe(self, snapshot: LoadSnapshot, records: float = math.inf) -> BalancePlan | None:
        """Take the load of the next window, and the number of records behind it; return a plan if it is time to act.

        The caller carries the plan out; otherwise the windows after the cool-down show that. A change in the number of workers
        restarts the count of uneven windows.
        """
        self.verdict, plan = self._judged(snapshot, records)
        return plan

    def interrupt(self) -> None:
        """Begin a new row of windows: the next one doesn't follow the last."""
        self._recent.clear()
        self._records.clear()
        self._uneven = 0

    def _judged(self, snapshot: LoadSnapshot, records: float) -> tuple[Verdict, BalancePlan | None]:
        settings = self._settings
        self._window += 1
        if self._awaits_splits(snapshot):
            return Verdict.SETTLING, None
        if self._recent and self._recent[-1].workers != snapshot.workers:
            self.interrupt()
            self._moved, self._promise = _Memory(), None
        if self._recent and _routes(self._recent[-1]) != _routes(snapshot):
            self.interrupt()
        seen = self._expected(snapshot)
        ripe = self._ripe(seen)
        self._uneven = self._uneven + 1 if self._is_uneven(seen, self._limits(seen, ripe)) else 0
        self._keep(seen, records)
        self._judge_last_plan(seen)
        if (self._uneven < self._needed and not ripe) or self._cooling:
            return self._waiting(snapshot, seen), None
        mean = mean_of(self._recent[-self._needed :])
        limits = self._limits(mean, ripe)
        if not (ripe or self._is_uneven(mean, limits)):
            return self._calm(mean), None
        if not (ripe or self._is_certain(mean, sum(self._records[-self._needed :]), limits)):
            mean = mean_of(self._recent)
            limits = self._limits(mean, ripe)
            if not self._is_certain(mean, sum(self._records), limits):
                return Verdict.CHANCE, None
        plan = self._balancer.plan(mean, limits)
        if not plan.changes or not (plan.gathers or self._gain(mean, plan, limits) >= settings.least_gain):
            return Verdict.NO_GAIN, None
        self._remember(mean, plan, limits)
        return Verdict.PLANNED, plan

    def _awaits_splits(self, snapshot: LoadSnapshot) -> bool:
        """Return True if the last plan's splits were not in effect during the whole window, which then doesn't count.

        The first window that shows the splits of the plan is the last that is ignored, because they were made during it.
        """
        if self._awaited is None:
            return False
        if not self._cooling:
            self._awaited = None
        elif _routes(snapshot) == self._awaited:
            self._awaited = None
            return True
        return self._awaited is not None

    def _ripe(self, snapshot: LoadSnapshot) -> frozenset[Hashable]:
        """Return the split keys that have been split needlessly for long enough to be gathered."""
        settings = self._settings
        needless = self._balancer.needless_splits(snapshot) if settings.split_keys else frozenset()
        self._needless = {key: self._needless.get(key, 0) + 1 for key in needless}
        return frozenset(key for key, windows in self._needless.items() if windows >= max(settings.rest, settings.windows))

    def _limits(self, snapshot: LoadSnapshot, ripe: frozenset[Hashable]) -> Limits:
        settings = self._settings
        kept = frozenset(split.key for split in snapshot.split_keys) - ripe
        return Limits(settings.tolerance, settings.max_bytes, *self._resting(snapshot), settings.split_keys, kept)

    @property
    def _cooling(self) -> bool:
        return self._acted is not None and self._window - self._acted < self._settings.cooldown

    def _is_uneven(self, snapshot: LoadSnapshot, limits: Limits) -> bool:
        return snapshot.imbalance > self._settings.threshold * self._balancer.floor(snapshot, limits)

    def _is_certain(self, mean: LoadSnapshot, records: float, limits: Limits) -> bool:
        """Return True if a load is more uneven than chance explains, with that many records behind it.

        The count of n records that arrive independently has the standard error sqrt(n). A worker with `floor` times the mean of n
        records has sqrt(floor / n) of the mean.
        """
        floor, each = self._balancer.floor(mean, limits), records / mean.workers
        chance = CHANCE * math.sqrt(floor / each) if each else math.inf
        return mean.imbalance > self._settings.threshold * floor + chance

    def _keep(self, seen: LoadSnapshot, records: float) -> None:
        """Add a window to those that a plan is made of: the newest ones, or all of a longer row of uneven ones."""
        most = max(self._needed, min(self._uneven, MOST_WINDOWS))
        self._recent, self._records = [*self._recent, seen][-most:], [*self._records, records][-most:]

    def _waiting(self, snapshot: LoadSnapshot, seen: LoadSnapshot) -> Verdict:
        """Return why nothing is planned for a window, which counts as `seen`."""
        if self._uneven:
            return Verdict.COOLING if self._cooling else Verdict.BRIEF
        return self._calm(seen) if seen is snapshot else Verdict.SETTLING

    def _calm(self, snapshot: LoadSnapshot) -> Verdict:
        return Verdict.EVEN if snapshot.imbalance <= self._settings.threshold else Verdict.FLOOR

    def _gain(self, snapshot: LoadSnapshot, plan: BalancePlan, limits: Limits) -> float:
        """Return the reduction of the hottest worker's load, in multiples of the mean; with splits, if it reaches the floor."""
        after = self._balancer.floor(snapshot, limits) if plan.splits else plan.imbalance_after
        return plan.imbalance_before - after

    def _judge_last_plan(self, seen: LoadSnapshot) -> None:
        """Compare the load since the last plan took effect with the load that it promised, for at most `windows`."""
        promise = self._promise
        if promise is None or (self._moved.under_way and self._cooling):
            return
        promise.seen.append(seen)
        if self._moved.under_way or _routes(seen) != _routes(promise.seen[0]):
            self._promise = None
        elif (good := mean_of(promise.seen).imbalance <= promise.most) or len(promise.seen) >= self._settings.windows:
            self._promise = None
            self._note_effect(good=good)

    def _note_effect(self, *, good: bool) -> None:
        windows = self._settings.windows
        self._needed = windows if good else min(2 * self._needed, max(windows, MOST_WINDOWS))

    def _remember(self, snapshot: LoadSnapshot, plan: BalancePlan, limits: Limits) -> None:
        if self._promise is not None:
            self._note_effect(good=False)
        self._promise = _Promise(snapshot.imbalance - KEPT * self._gain(snapshot, plan, limits)) if not plan.gathers else None
        self._acted, self._uneven, self._moved.under_way = self._window, 0, True
        group_loads = {group.group: group.load for group in snapshot.key_groups}
        gathered = {split.key: split for split in snapshot.split_keys if split.key in plan.gathers}
        key_loads = {key.key: key.load for key in snapshot.hot_keys} | {key: split.whole_load for key, split in gathered.items()}
        for key, split in gathered.items():
            self._moved.keys[key] = _Moved(split.workers[0], split.whole_load, self._window)
        for move in plan.moves:
            if move.group is not None:
                self._moved.groups[move.group] = _Moved(move.target, group_loads[move.group], self._window)
            else:
                self._moved.keys[move.key] = _Moved(move.target, key_loads[move.key], self._window)
        if plan.splits or gathered:
            changed = {*gathered, *(split.key for split in plan.splits)}
            kept = {route for route in _routes(snapshot) if route[0] not in changed}
            self._awaited = frozenset((*kept, *((split.key, (split.home, *split.others), split.dealt) for split in plan.splits)))

    def _resting(self, snapshot: LoadSnapshot) -> tuple[frozenset[int], frozenset[Hashable]]:
        """Return groups and keys that moved recently, are still at their new worker, and whose load hasn't shifted since."""
        moved = self._moved
        oldest = self._window - self._settings.rest
        moved.groups = {group: entry for group, entry in moved.groups.items() if entry.window > oldest}
        moved.keys = {key: entry for key, entry in moved.keys.items() if entry.window > oldest}
        at = np.flatnonzero(np.isin(snapshot.group_ids, list(moved.groups)))
        columns = (snapshot.group_ids[at], snapshot.group_workers[at], snapshot.group_loads[at])
        present = zip(*(column.tolist() for column in columns), strict=True)
        groups = frozenset(group for group, worker, load in present if self._rests(moved.groups.get(group), worker, load))
        keys = zip(snapshot.hot_keys, snapshot.key_workers.tolist(), strict=True) if moved.keys else ()
        return groups, frozenset(k.key for k, worker in keys if self._rests(moved.keys.get(k.key), worker, k.load))

    def _rests(self, moved: _Moved | None, worker: int, load: float) -> bool:
        shift = self._settings.shift
        return moved is not None and moved.target == worker and moved.load / shift <= load <= moved.load * shift

    def _expected(self, snapshot: LoadSnapshot) -> LoadSnapshot:
        """Return the window as if the last plan had taken effect: moved groups and keys count at their new worker, with at least
        their old load.

        The first window that shows all of them there is the last one treated like this, because moves were in progress when it
        began. After the cool-down, windows count unchanged.
        """
        if not (self._moved.under_way and self._cooling):
            return snapshot
        groups, keys, arrived = list(snapshot.key_groups), list(snapshot.hot_keys), True
        for at, (key, home, worker) in enumerate(zip(keys, snapshot.key_at.tolist(), snapshot.key_workers.tolist(), strict=True)):
            if (moved := self._of_last_plan(self._moved.keys.get(key.key))) is not None:
                load = max(key.load, moved.load)
                arrived = arrived and worker == moved.target
                keys[at] = key._replace(worker=moved.target, load=load)
                groups[home] = groups[home]._replace(load=groups[home].load + load - key.load)
        for at, group in enumerate(groups):
            if (moved := self._of_last_plan(self._moved.groups.get(group.group))) is not None:
                arrived = arrived and group.worker == moved.target
                groups[at] = group._replace(worker=moved.target, load=max(group.load, moved.load))
        self._moved.under_way = not arrived
        return LoadSnapshot(snapshot.workers, groups, keys, snapshot.split_keys, snapshot.dealable)

    def _of_last_plan(self, moved: _Moved | None) -> _Moved | None:
        return moved if moved is not None and moved.window == self._acted else None


def mean_of(snapshots: Sequence[LoadSnapshot]) -> LoadSnapshot:
    """Return the last snapshot with the mean loads of all, which have the same split keys; a group missing in one had no load
    then.
    """
    last, loads, keys = snapshots[-1], np.zeros(MAX_GROUPS), dict[Hashable, float]()
    lefts = dict[Hashable, float | None]()
    for snapshot in snapshots:
        loads[snapshot.group_ids] += snapshot.group_loads / len(snapshots)
        for key, load in zip(snapshot.hot_keys, snapshot.key_loads.tolist(), strict=True):
            keys[key.key] = keys.get(key.key, 0.0) + load / len(snapshots)
            left = lefts.get(key.key, 0.0)
            lefts[key.key] = left + key.left / len(snapshots) if left is not None and key.left is not None else None
    groups = zip(last.key_groups, loads[last.group_ids].tolist(), strict=True)
    return LoadSnapshot(
        last.workers,
        [g._replace(load=load) for g, load in groups],
        [k._replace(load=keys[k.key], left=lefts[k.key]) for k in last.hot_keys],
        [_mean_split(split, snapshots) for split in last.split_keys],
        last.dealable,
    )


def _mean_split(split: SplitKey, snapshots: Sequence[LoadSnapshot]) -> SplitKey:
    same = [other for snapshot in snapshots for other in snapshot.split_keys if other.key == split.key]
    loads = np.mean([other.loads for other in same], axis=0).tolist()
    return split._replace(loads=tuple(loads), copied=float(np.mean([other.copied for other in same])))


def _routes(snapshot: LoadSnapshot) -> frozenset[_Route]:
    return frozenset((split.key, split.workers, split.dealt) for split in snapshot.split_keys)
