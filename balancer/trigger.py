"""When to balance: a state machine over the windows of one operator, without a clock.

Invariants: a plan needs `windows` uneven windows in a row, and `cooldown` windows since the previous plan. Groups and keys that moved count
with their old load at their new worker until they work there, so that the trigger doesn't react twice to one hotspot. They stay there for
`rest` windows unless their load shifts.

>>> from .snapshot import GroupLoad
>>> trigger = Trigger(Hotspot(), TriggerSettings(windows=2))
>>> snapshot = LoadSnapshot(2, [GroupLoad(0, 0, 1.0), GroupLoad(1, 0, 1.0)])
>>> trigger.observe(snapshot) is None
True
>>> [(move.group, move.target) for move in trigger.observe(snapshot).moves]
[(0, 1)]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..engine.errors import FlowError
from ..state.hashing import MAX_GROUPS
from .base import Balancer, Limits
from .hotspot import Hotspot
from .plan import BalancePlan
from .snapshot import LoadSnapshot


@dataclass(frozen=True, slots=True)
class TriggerSettings:
    """When to act, and how far.

    `threshold`: uneven is max / mean load over `threshold * floor`. `windows`: the number of uneven windows in a row that lead to a plan,
    made from their mean. `cooldown`: windows from one plan to the next. `rest`: windows in which a moved group or key doesn't move again,
    unless its load changed by the factor `shift`. `least_gain`: a plan that lowers max / mean by less is not worth its moves. `tolerance`,
    `max_bytes`: as in `Limits`, for each plan. Raises FlowError for values that can't work.
    """

    threshold: float = 1.2
    windows: int = 3
    cooldown: int = 3
    rest: int = 10
    shift: float = 1.5
    least_gain: float = 0.02
    tolerance: float = 1.05
    max_bytes: int | None = None

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
    """Recent moves, by key group and by key; `under_way`: the last plan has not taken effect yet."""

    under_way: bool = False
    groups: dict[int, _Moved] = field(default_factory=dict)
    keys: dict[Hashable, _Moved] = field(default_factory=dict)


class Trigger:
    """One per operator. `observe` takes one snapshot per window."""

    def __init__(self, balancer: Balancer | None = None, settings: TriggerSettings = TriggerSettings()) -> None:
        self._balancer, self._settings = balancer or Hotspot(), settings
        self._recent: deque[LoadSnapshot] = deque(maxlen=settings.windows)
        self._window = 0
        self._uneven = 0
        self._acted: int | None = None
        self._moved = _Memory()

    def observe(self, snapshot: LoadSnapshot) -> BalancePlan | None:
        """The load of the next window; a plan if it is time to act.

        The caller carries the plan out; if it doesn't, the windows after the cool-down show that. A change in the number of workers
        restarts the count of uneven windows.
        """
        settings = self._settings
        self._window += 1
        if self._recent and self._recent[-1].workers != snapshot.workers:
            self._recent.clear()
            self._uneven, self._moved = 0, _Memory()
        seen = self._expected(snapshot)
        self._recent.append(seen)
        self._uneven = self._uneven + 1 if self._is_uneven(seen) else 0
        if self._uneven < settings.windows or self._cooling:
            return None
        mean = mean_of(self._recent)
        if not self._is_uneven(mean):
            return None
        limits = Limits(settings.tolerance, settings.max_bytes, *self._resting(mean))
        plan = self._balancer.plan(mean, limits)
        if not plan.moves or plan.imbalance_before - plan.imbalance_after < settings.least_gain:
            return None
        self._remember(mean, plan)
        return plan

    @property
    def _cooling(self) -> bool:
        return self._acted is not None and self._window - self._acted < self._settings.cooldown

    def _is_uneven(self, snapshot: LoadSnapshot) -> bool:
        return snapshot.imbalance > self._settings.threshold * snapshot.floor

    def _remember(self, snapshot: LoadSnapshot, plan: BalancePlan) -> None:
        self._acted, self._uneven, self._moved.under_way = self._window, 0, True
        group_loads = {group.group: group.load for group in snapshot.key_groups}
        key_loads = {key.key: key.load for key in snapshot.hot_keys}
        for move in plan.moves:
            if move.group is not None:
                self._moved.groups[move.group] = _Moved(move.target, group_loads[move.group], self._window)
            else:
                self._moved.keys[move.key] = _Moved(move.target, key_loads[move.key], self._window)

    def _resting(self, snapshot: LoadSnapshot) -> tuple[frozenset[int], frozenset[Hashable]]:
        """Groups and keys that moved recently, are still at their new worker, and whose load hasn't shifted since."""
        moved = self._moved
        oldest = self._window - self._settings.rest
        moved.groups = {group: entry for group, entry in moved.groups.items() if entry.window > oldest}
        moved.keys = {key: entry for key, entry in moved.keys.items() if entry.window > oldest}
        groups = frozenset(g.group for g in snapshot.key_groups if self._rests(moved.groups.get(g.group), g.worker, g.load))
        keys = zip(snapshot.hot_keys, snapshot.key_workers.tolist(), strict=True)
        return groups, frozenset(k.key for k, worker in keys if self._rests(moved.keys.get(k.key), worker, k.load))

    def _rests(self, moved: _Moved | None, worker: int, load: float) -> bool:
        shift = self._settings.shift
        return moved is not None and moved.target == worker and moved.load / shift <= load <= moved.load * shift

    def _expected(self, snapshot: LoadSnapshot) -> LoadSnapshot:
        """The window as if the last plan had taken effect: moved groups and keys count at their new worker, with at least their old load.

        The first window that shows all of them there is the last one treated like this, because moves were in progress when it began. After
        the cool-down, windows count as they are.
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
        return LoadSnapshot(snapshot.workers, groups, keys)

    def _of_last_plan(self, moved: _Moved | None) -> _Moved | None:
        return moved if moved is not None and moved.window == self._acted else None


def mean_of(snapshots: Sequence[LoadSnapshot]) -> LoadSnapshot:
    """The last snapshot with the mean loads of all; a group missing in one had no load then."""
    last, loads, keys = snapshots[-1], np.zeros(MAX_GROUPS), dict[Hashable, float]()
    for snapshot in snapshots:
        loads[snapshot.group_ids] += snapshot.group_loads / len(snapshots)
        for key, load in zip(snapshot.hot_keys, snapshot.key_loads.tolist(), strict=True):
            keys[key.key] = keys.get(key.key, 0.0) + load / len(snapshots)
    groups = zip(last.key_groups, loads[last.group_ids].tolist(), strict=True)
    return LoadSnapshot(last.workers, [g._replace(load=load) for g, load in groups], [k._replace(load=keys[k.key]) for k in last.hot_keys])
