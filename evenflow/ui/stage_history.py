"""The last ten minutes of one stage, second by second."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from ..engine.protocol.ids import WorkerId
from ..scheduler.load.metrics import OperatorLoad
from ..scheduler.load.window import WorkerWindow
from ..scheduler.protocol.view import StageView
from ..state.hashing import group_of
from .heat import Owners, bands, by_owner, moves, packed, rows_of
from .past_owners import owners_before
from .second import Second, WorkerSecond, parts

KEPT = 600
"""Seconds that are kept."""

OPEN = 30
"""Seconds to which late windows are still added; older ones are kept in few bytes."""

HOT_KEYS = 12

NEWEST = 5
"""Seconds over which the present load is a mean."""


class StageHistory:
    """`hash_of` gives a key's hash64. `columns` are the seconds as the page gets them, the oldest first."""

    def __init__(self, view: StageView, hash_of: Callable[[Hashable], int]) -> None:
        self.view = view
        self.columns: dict[int, dict[str, Any]] = {}
        self.newest: dict[WorkerId, WorkerWindow] = {}
        """The newest window of each worker."""
        self._seconds: dict[int, Second] = {}
        self._hash_of = hash_of
        self._groups_of: dict[Hashable, int] = {}

    def add(self, view: StageView, windows: Iterable[WorkerWindow], now: int) -> set[int]:
        """What a view tells of the stage at second `now`; the seconds that have changed."""
        self.view, changed = view, set[int]()
        windows, first = list(windows), not self.columns
        groups = 0 if view.table is None else len(view.table)
        self.newest = {worker: window for worker, window in self.newest.items() if worker in view.workers}
        for window in windows:
            self.newest[window.worker] = window
            for second, part in parts(window):
                if second > now - (KEPT if first else OPEN):
                    self._second(second).add(window, part, groups)
                    changed.add(second)
        if view.table is not None:
            if first:
                self._look_back(view.table.groups, windows)
            self._own(view.table.groups, now)
        for second in changed:
            self.columns[second] = self._column(second)
        self.columns = {at: column for at, column in sorted(self.columns.items()) if at > now - KEPT}
        self._seconds = {at: second for at, second in self._seconds.items() if at > now - OPEN}
        return changed

    def workers(self, until: int) -> dict[WorkerId, WorkerSecond]:
        """What each worker did in the newest seconds up to `until`, added up."""
        sums = {worker: WorkerSecond() for worker in self.view.workers}
        for at in range(until - NEWEST + 1, until + 1):
            for worker, did in self._seconds.get(at, Second()).workers.items():
                if worker in sums:
                    for name in WorkerSecond.__slots__:
                        setattr(sums[worker], name, getattr(sums[worker], name) + getattr(did, name))
        return sums

    def load(self, until: int) -> OperatorLoad:
        """The present load, a mean of the newest seconds up to `until`."""
        seconds = [self._seconds[at] for at in range(until - NEWEST + 1, until + 1) if at in self._seconds]
        keys: dict[Hashable, float] = {}
        for second in seconds:
            for key, (records, _) in second.hot.items():
                keys[key] = keys.get(key, 0.0) + records
        hot = tuple(sorted(((key, round(records)) for key, records in keys.items()), key=lambda item: -item[1])[:HOT_KEYS])
        useful: dict[str, float] = {worker: did.useful / max(did.measured, 1e-9) for worker, did in self.workers(until).items()}
        splits = {} if self.view.table is None else self.view.table.splits
        split = tuple(key for key, _ in hot if splits and self._hash_of(key) in splits)
        return OperatorLoad(useful, {}, hot, round(sum(s.records for s in seconds)), bool(self.view.dealable), (), split)

    def imbalance(self, begin: float, until: float) -> float | None:
        """The mean of max / mean load in these seconds, None if nothing was measured."""
        loads: dict[str, list[float]] = {}
        for at, column in self.columns.items():
            if begin <= at < until:
                for worker, useful in column["workers"].items():
                    loads.setdefault(worker, []).append(useful)
        means = [float(np.mean(useful)) for useful in loads.values()]
        return max(means) / (sum(means) / len(means)) if sum(means) > 0 else None

    def _second(self, at: int) -> Second:
        return self._seconds.setdefault(at, Second())

    def _look_back(self, owners: Owners, windows: list[WorkerWindow]) -> None:
        for at in sorted(self._seconds, reverse=True):
            owners = owners_before(owners, (w for w in windows if any(second == at for second, _ in parts(w))))
            self._seconds[at].owners = owners

    def _own(self, owners: Owners, now: int) -> None:
        """These are the owners now; a second in which nobody asked gets those of the one before."""
        known = max((at for at, second in self._seconds.items() if second.owners is not None and at < now), default=None)
        last = None if known is None else self._seconds[known].owners
        for at, second in self._seconds.items():
            if second.owners is None and at < now:
                second.owners = last if last is not None and known is not None and at > known else owners
        self._second(now).owners = last if last is not None and np.array_equal(last, owners) else owners

    def _column(self, at: int) -> dict[str, Any]:
        second = self._seconds[at]
        column: dict[str, Any] = {
            "workers": {worker: round(did.useful / max(did.measured, 1e-9), 4) for worker, did in second.workers.items()},
            "rows": round(sum(did.rows_in for did in second.workers.values())),
        }
        if second.owners is None:
            return column
        before = self._seconds.get(at - 1)
        load = second.load if len(second.load) else np.zeros(len(second.owners))
        values, groups = rows_of(load, by_owner(second.owners))
        names = sorted(second.workers, key=lambda worker: int(worker.rpartition("-")[2]))
        return column | {
            "load": packed(values),
            "groups": packed(groups),
            "bands": bands(second.owners, max(len(self.view.workers), len(names))),
            "hot": [
                [str(key), self._group_of(key, len(second.owners)), round(records), worker]
                for key, records, worker in second.hottest(HOT_KEYS)
            ],
            "records": round(second.records),
            "moves": moves(before.owners, second.owners, load) if before is not None and before.owners is not None else [],
        }

    def _group_of(self, key: Hashable, groups: int) -> int:
        if key not in self._groups_of:
            if len(self._groups_of) > 10_000:
                self._groups_of.clear()
            self._groups_of[key] = int(group_of(np.array([self._hash_of(key)], np.uint64), groups)[0])
        return self._groups_of[key]
