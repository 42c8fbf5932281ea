"""The last ten minutes of one stage, second by second."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from ..engine.protocol.ids import FIRST_CODE, CodeVersion, WorkerId, code_of, index_of
from ..scheduler.load.metrics import OperatorLoad
from ..scheduler.load.window import WorkerWindow
from ..scheduler.protocol.view import StageView
from ..state.hashing import group_of
from .heat import Owners, bands, by_owner, drawn_owners, moves, owners_before, packed, rows_of
from .time_bucket import TimeBucket, WorkerUsage, parts

KEPT = 600
"""Seconds that are kept."""

OPEN = 30
"""Seconds to which late windows are still added; older ones are kept in few bytes."""

HOT_KEYS = 12

NEWEST = 5
"""Seconds over which the present load is averaged."""


class StageHistory:
    """The history of one stage. `columns` are its seconds as JSON objects, the oldest first. `hash_of` hashes a key."""

    def __init__(self, view: StageView, hash_of: Callable[[Hashable], int]) -> None:
        self.view = view
        self.columns: dict[int, dict[str, Any]] = {}
        self.newest: dict[WorkerId, WorkerWindow] = {}
        """The newest window of each worker."""
        self._buckets: dict[int, TimeBucket] = {}
        self._hash_of = hash_of
        self._groups_of: dict[Hashable, int] = {}

    def add(self, view: StageView, windows: Iterable[WorkerWindow], now: int) -> set[int]:
        """Add a view of the stage at second `now`, and its new windows; return the seconds that have changed."""
        self.view, changed = view, set[int]()
        windows, first = list(windows), not self.columns
        groups = 0 if view.table is None else len(view.table)
        self.newest = {worker: window for worker, window in self.newest.items() if worker in view.workers}
        for window in windows:
            self.newest[window.worker] = window
            for second, part in parts(window):
                if second > now - (KEPT if first else OPEN):
                    self._bucket(second).add(window, part, groups)
                    changed.add(second)
        if view.table is not None:
            codes, owners = tuple(map(code_of, view.workers)), drawn_owners(view.table)
            if first:
                self._infer_owners(owners, codes, windows)
            self._note_owners(owners, codes, now)
        for second in changed:
            self.columns[second] = self._column(second)
        self.columns = {at: column for at, column in sorted(self.columns.items()) if at > now - KEPT}
        self._buckets = {at: bucket for at, bucket in self._buckets.items() if at > now - OPEN}
        return changed

    def workers(self, until: int) -> dict[WorkerId, WorkerUsage]:
        """Add up the work of each worker over the newest seconds up to `until`."""
        sums = {worker: WorkerUsage() for worker in self.view.workers}
        for bucket in self._newest(until):
            for worker, usage in bucket.workers.items():
                if worker in sums:
                    sums[worker].add(usage)
        return sums

    def load(self, until: int) -> OperatorLoad:
        """Return the present load, a mean of the newest seconds up to `until`."""
        buckets = self._newest(until)
        keys: dict[Hashable, float] = {}
        for bucket in buckets:
            for key, (records, _) in bucket.hot.items():
                keys[key] = keys.get(key, 0.0) + records
        hot = tuple(sorted(((key, round(records)) for key, records in keys.items()), key=lambda item: -item[1])[:HOT_KEYS])
        busy: dict[str, float] = {worker: usage.busy for worker, usage in self.workers(until).items()}
        splits = {} if self.view.table is None else self.view.table.splits
        split = tuple(key for key, _ in hot if splits and self._hash_of(key) in splits)
        return OperatorLoad(busy, {}, hot, round(sum(bucket.records for bucket in buckets)), bool(self.view.dealable), (), split)

    def imbalance(self, begin: float, until: float) -> float | None:
        """Return the mean of max / mean load in these seconds, None if nothing was measured."""
        loads: dict[int, dict[int, float]] = {}
        for at, column in self.columns.items():
            if begin <= at < until:
                for worker, busy in column["workers"].items():
                    seconds = loads.setdefault(index_of(worker), {})
                    seconds[at] = seconds.get(at, 0.0) + busy  # a worker and the one that takes its place
        means = [float(np.mean(list(seconds.values()))) for seconds in loads.values()]
        return max(means) / (sum(means) / len(means)) if sum(means) > 0 else None

    def _newest(self, until: int) -> list[TimeBucket]:
        return [self._buckets[at] for at in range(until - NEWEST + 1, until + 1) if at in self._buckets]

    def _bucket(self, at: int) -> TimeBucket:
        return self._buckets.setdefault(at, TimeBucket())

    def _infer_owners(self, owners: Owners, codes: tuple[CodeVersion, ...], windows: list[WorkerWindow]) -> None:
        """Infer the owners of the seconds before the first view, as if their workers had run the same code then."""
        for at in sorted(self._buckets, reverse=True):
            owners = owners_before(owners, (w for w in windows if any(second == at for second, _ in parts(w))))
            self._buckets[at].owners, self._buckets[at].codes = owners, codes

    def _note_owners(self, owners: Owners, codes: tuple[CodeVersion, ...], now: int) -> None:
        """Note the owners at second `now` and their code; a second without a view gets those of the second before."""
        known = max((at for at, bucket in self._buckets.items() if bucket.owners is not None and at < now), default=now)
        last = TimeBucket(owners=owners, codes=codes) if known == now else self._buckets[known]
        for at, bucket in self._buckets.items():
            if bucket.owners is None and at < now:
                bucket.owners, bucket.codes = (last.owners, last.codes) if at > known else (owners, codes)
        same = last.owners is not None and np.array_equal(last.owners, owners)
        self._bucket(now).owners = last.owners if same else owners
        self._bucket(now).codes = codes

    def _column(self, at: int) -> dict[str, Any]:
        bucket = self._buckets[at]
        column: dict[str, Any] = {
            "workers": {worker: round(usage.busy, 4) for worker, usage in bucket.workers.items()},
            "rows": round(sum(usage.rows_in for usage in bucket.workers.values())),
        }
        if bucket.owners is None:
            return column
        before = self._buckets.get(at - 1)
        load = bucket.load if len(bucket.load) else np.zeros(len(bucket.owners))
        values, groups = rows_of(load, by_owner(bucket.owners))
        return column | {
            "load": packed(values),
            "groups": packed(groups),
            "bands": bands(bucket.owners, max([len(self.view.workers), *(index_of(worker) + 1 for worker in bucket.workers)])),
            **({"codes": list(bucket.codes)} if any(code != FIRST_CODE for code in bucket.codes) else {}),
            "hot": [
                [str(key), self._group_of(key, len(bucket.owners)), round(records), worker]
                for key, records, worker in bucket.hottest(HOT_KEYS)
            ],
            "records": round(bucket.records),
            "moves": moves(before.owners, bucket.owners, load) if before is not None and before.owners is not None else [],
        }

    def _group_of(self, key: Hashable, groups: int) -> int:
        if key not in self._groups_of:
            if len(self._groups_of) > 10_000:
                self._groups_of.clear()
            self._groups_of[key] = int(group_of(np.array([self._hash_of(key)], np.uint64), groups)[0])
        return self._groups_of[key]
