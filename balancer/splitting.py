"""The choice of a join's hot keys to split over several workers, or to gather again.

Invariant: a key is split only where that lowers the load of the hottest worker by at least `LEAST_GAIN`, and gathered only when
it is far from being split again: the two limits of the load, `tolerance` and `COOLED`, and those of the gain are far apart, so
that no key alternates.

No placement of whole keys gets a worker below the load of its hottest key. With n workers that share the key, the rows of one
side are dealt over them and those of the other go to all: each has `dealt / n + copied` of the key's load, and the operator has
`(n - 1) * copied` more to do. So n is the least number that minimises the larger of that part and of the mean, which the copies
raise, and leaves room for other keys, so that not all of them must move away from the workers that share the key.

>>> snapshot = LoadSnapshot(4, [GroupLoad(0, 0, 1.0)], [KeyLoad("ATL", 0, 0.8, left=0.76)], dealable=("left",))
>>> changed = reshaped(snapshot)
>>> changed.splits
(KeySplit(key='ATL', home=0, others=(1, 2, 3), dealt='left'),)
>>> print(changed.reasons[0])
hot key 'ATL' alone has 3.20 times the mean load, which no placement of whole keys divides: its left rows are dealt over workers 0, 1, 2, 3
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..engine.protocol.split_route import Dealt
from .base import ANY_STATE, Limits
from .plan import KeySplit
from .snapshot import GroupLoad, KeyLoad, LoadSnapshot, SplitKey

LEAST_GAIN = 0.1
"""A split that lowers the key's load at a worker by less than this part of it is not worth its copies."""

COOLED = 0.5
"""A split key that would have no more than this part of the mean load has cooled."""

IN_VAIN = 0.95
"""A key is split in vain if each worker has this part of its load: nearly all its rows are copied."""

ROOM = 0.75
"""The largest part of a worker's mean load that a split key should take, so that other keys find room."""

NEARLY = 1.05
"""A number of workers whose result is within this factor of the best is as good."""


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The result of splitting and gathering keys.

    `snapshot`: the load once the keys of `splits` are split and those of `gathers` are whole at their homes. `reasons`: a text
    for each. `state_bytes`: the copies.
    """

    snapshot: LoadSnapshot
    splits: tuple[KeySplit, ...] = ()
    gathers: tuple[Hashable, ...] = ()
    reasons: tuple[str, ...] = ()
    state_bytes: int = 0


def reshaped(snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> Reshaped:
    """Choose keys to split and to gather: none if the limits or the operator don't allow it, or if it wouldn't help."""
    if not limits.split_keys or snapshot.mean <= 0 or not (snapshot.dealable or snapshot.split_keys):
        return Reshaped(snapshot)
    gathers = tuple(split for split in snapshot.split_keys if split.key not in limits.kept_split and _is_needless(snapshot, split))
    reasons = [f"hot key {split.key!r} {_why_gathered(snapshot, split)}: it is no longer split" for split in gathers]
    seen, splits, state_bytes = _gathered(snapshot, gathers), list[KeySplit](), 0
    for candidate in _candidates(seen, limits, frozenset(split.key for split in gathers)):
        if candidate.load <= limits.tolerance * seen.mean:
            break
        split = _best(seen, candidate)
        if split is None:
            continue
        cost = candidate.state_bytes(split)
        if limits.max_bytes is not None and state_bytes + cost > limits.max_bytes:
            continue
        workers = ", ".join(map(str, sorted(split.workers)))
        reasons.append(
            f"hot key {split.key!r} alone has {candidate.load / seen.mean:.2f} times the mean load, which no placement of whole keys "
            f"divides: its {split.dealt} rows are dealt over workers {workers}"
        )
        splits.append(KeySplit(split.key, split.workers[0], tuple(sorted(split.workers[1:])), split.dealt))
        seen, state_bytes = _with_split(seen, split), state_bytes + cost
    return Reshaped(seen, tuple(splits), tuple(split.key for split in gathers), tuple(reasons), state_bytes)


def needless(snapshot: LoadSnapshot) -> frozenset[Hashable]:
    """Return the split keys that have cooled, or are split in vain."""
    return frozenset(split.key for split in snapshot.split_keys if _is_needless(snapshot, split))


def reachable_floor(snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> float:
    """Return the least imbalance of any placement once keys are split, in multiples of the mean load before."""
    changed = reshaped(snapshot, limits)
    return changed.snapshot.floor * changed.snapshot.mean / snapshot.mean if changed.splits else snapshot.floor


class _Candidate(NamedTuple):
    """A hot key at one worker, or a split key; `load`: the largest part of its load at a worker."""

    load: float
    whole: float
    left: float
    key: Hashable
    group: int
    workers: tuple[int, ...]
    dealable: tuple[Dealt, ...]
    bytes: int

    def copied(self, dealt: Dealt) -> float:
        """Return the load of the rows that go to all workers."""
        return self.whole - self.left if dealt == "left" else self.left

    def state_bytes(self, split: SplitKey) -> int:
        """Return the bytes copied to workers, if state is distributed over the sides as the load is."""
        more = len(split.workers) - len(self.workers)
        return round(self.bytes * more * self.copied(split.dealt) / self.whole)


class _Option(NamedTuple):
    """A way to split. `reached`: the least load of the hottest worker; `part`: the key's load at each worker; in multiples of the
    mean.
    """

    reached: float
    part: float
    workers: int
    dealt: Dealt

    def preference(self) -> tuple[bool, float, float]:
        """Return the sort key: the fewest workers that leave room for other keys, else the smallest part."""
        crowded = self.part > ROOM
        return crowded, self.part if crowded else self.workers, self.reached


def _candidates(snapshot: LoadSnapshot, limits: Limits, gathered: frozenset[Hashable]) -> list[_Candidate]:
    """List the keys that may be shared by more workers, the hottest first."""
    found = [
        _Candidate(key.load, key.load, key.left, key.key, key.group, (worker,), snapshot.dealable, key.state_bytes)
        for key, worker in zip(snapshot.hot_keys, snapshot.key_workers.tolist(), strict=True)
        if key.left is not None and key.load > 0 and key.key not in limits.fixed_keys | gathered
    ]
    for split in snapshot.split_keys:
        part, whole = _part(split), split.whole_load
        left = split.dealt_load if split.dealt == "left" else split.copied
        if whole > 0:
            found.append(_Candidate(part, whole, left, split.key, split.group, split.workers, (split.dealt,), 0))
    return sorted(found, key=lambda candidate: -candidate.load)


def _best(snapshot: LoadSnapshot, candidate: _Candidate) -> SplitKey | None:
    """Return the split that helps the most, with the fewest workers; None if none helps enough."""
    now, workers = len(candidate.workers), snapshot.workers
    before = snapshot.mean * workers
    options = []
    for dealt in candidate.dealable:
        copied = candidate.copied(dealt)
        for count in range(now + 1, workers + 1):
            mean, part = (before + (count - now) * copied) / workers, (candidate.whole - copied) / count + copied
            options.append(_Option(max(mean, part), part / mean, count, dealt))
    good = min((option.reached for option in options), default=np.inf)
    if good > (1 - LEAST_GAIN) * candidate.load:
        return None
    chosen = min((option for option in options if option.reached <= NEARLY * good), key=_Option.preference)
    count, dealt = chosen.workers, chosen.dealt
    sharing = (*candidate.workers, *_coldest(snapshot, candidate, count - now))
    copied = candidate.copied(dealt)
    part = (candidate.whole - copied) / count + copied
    return SplitKey(candidate.key, candidate.group, dealt, sharing, (part,) * count, copied)


def _coldest(snapshot: LoadSnapshot, candidate: _Candidate, count: int) -> list[int]:
    """Return the `count` coldest workers without the key."""
    order = np.argsort(snapshot.worker_loads(), kind="stable").tolist()
    return [worker for worker in order if worker not in candidate.workers][:count]


def _is_needless(snapshot: LoadSnapshot, split: SplitKey) -> bool:
    return _has_cooled(snapshot, split) or _part(split) >= IN_VAIN * split.whole_load


def _has_cooled(snapshot: LoadSnapshot, split: SplitKey) -> bool:
    return split.whole_load <= COOLED * _mean_without_copies(snapshot, split)


def _why_gathered(snapshot: LoadSnapshot, split: SplitKey) -> str:
    if _has_cooled(snapshot, split):
        mean = _mean_without_copies(snapshot, split)
        return f"has cooled to {split.whole_load / mean if mean else 0.0:.2f} times the mean load"
    return f"has hardly any {split.dealt} rows left to deal"


def _part(split: SplitKey) -> float:
    """Return the key's load at each worker if its rows are dealt evenly."""
    return split.dealt_load / len(split.workers) + split.copied


def _mean_without_copies(snapshot: LoadSnapshot, split: SplitKey) -> float:
    return snapshot.mean - max(sum(split.loads) - split.whole_load, 0.0) / snapshot.workers


def _with_split(snapshot: LoadSnapshot, split: SplitKey) -> LoadSnapshot:
    """Return the load once the key is shared by more workers."""
    whole = next((key for key in snapshot.hot_keys if key.key == split.key), None)
    groups, keys = list(snapshot.key_groups), [key for key in snapshot.hot_keys if key.key != split.key]
    if whole is not None:
        groups = _with_load(groups, whole.group, -whole.load, -whole.state_bytes)
    others = [other for other in snapshot.split_keys if other.key != split.key]
    return LoadSnapshot(snapshot.workers, groups, keys, [*others, split], snapshot.dealable)


def _gathered(snapshot: LoadSnapshot, gathers: tuple[SplitKey, ...]) -> LoadSnapshot:
    """Return the load once these keys are whole at their homes."""
    if not gathers:
        return snapshot
    groups, keys = list(snapshot.key_groups), list(snapshot.hot_keys)
    for split in gathers:
        left = split.dealt_load if split.dealt == "left" else split.copied
        groups = _with_load(groups, split.group, split.whole_load, 0)
        keys.append(KeyLoad(split.key, split.group, split.whole_load, 0, split.workers[0], left))
    rest = [split for split in snapshot.split_keys if split not in gathers]
    return LoadSnapshot(snapshot.workers, groups, keys, rest, snapshot.dealable)


def _with_load(groups: list[GroupLoad], group: int, load: float, state_bytes: int) -> list[GroupLoad]:
    """Return the groups, with this load and state added to one."""
    at = next(index for index, entry in enumerate(groups) if entry.group == group)
    changed = groups[at]._replace(load=max(groups[at].load + load, 0.0), state_bytes=max(groups[at].state_bytes + state_bytes, 0))
    return [*groups[:at], changed, *groups[at + 1 :]]
