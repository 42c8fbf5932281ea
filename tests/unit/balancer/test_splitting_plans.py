"""Hot keys that `hotspot` splits and gathers: only if the operator can and it helps, and without alternating."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.balancer.base import Limits
from evenflow.balancer.hotspot import Hotspot
from evenflow.balancer.plan import KeySplit
from evenflow.balancer.policies import named
from evenflow.balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot, SplitKey
from evenflow.balancer.splitting import LEAST_GAIN, reachable_floor, reshaped
from evenflow.engine.protocol.routing import even_table
from evenflow.engine.protocol.split_route import SplitRoute
from evenflow.state.hashing import group_of

WORKERS = 4
BACKGROUND = [GroupLoad(group, group % WORKERS, 0.01, 100) for group in range(1, 41)]
"""0.4 of the load: a tenth at each worker."""


def join_with(load: float, left: float | None, dealable=("left", "right"), worker: int = 0) -> LoadSnapshot:
    """Return a join with one key of the load `load`; all other load is even."""
    return LoadSnapshot(WORKERS, [GroupLoad(0, worker, load, 100), *BACKGROUND], [KeyLoad("ATL", 0, load, 80, left=left)], (), dealable)


def shared(loads: tuple[float, ...], copied: float, dealt="left") -> LoadSnapshot:
    """Return the same join with the key split over the first workers."""
    split = SplitKey("ATL", 0, dealt, tuple(range(len(loads))), loads, copied)
    return LoadSnapshot(WORKERS, [GroupLoad(0, 0, 0.0, 100), *BACKGROUND], (), [split], ("left", "right"))


def test_key_above_the_mean_is_split_and_its_hotter_side_is_dealt():
    plan = Hotspot().plan(join_with(0.6, left=0.03))
    assert plan.splits == (KeySplit("ATL", 0, (1, 2, 3), "right"),)
    assert (plan.imbalance_before, plan.imbalance_after) == (pytest.approx(2.8), pytest.approx(1.0, abs=0.06))
    assert plan.state_bytes == round(80 * 3 * 0.03 / 0.6)
    assert plan.reason.startswith(
        "hot key 'ATL' alone has 2.40 times the mean load, which no placement of whole keys divides: its right rows"
    )


def test_no_more_workers_share_a_key_than_it_takes():
    (split,) = Hotspot().plan(join_with(0.2, left=0.2)).splits
    assert len(split.others) == 1
    assert 0 not in split.others


def test_home_is_the_worker_that_has_the_key():
    (split,) = Hotspot().plan(join_with(0.9, left=0.9, worker=2)).splits
    assert (split.home, split.others) == (2, (0, 1, 3))


@pytest.mark.parametrize(
    ("snapshot", "limits"),
    [
        pytest.param(join_with(0.6, left=0.6, dealable=()), Limits(), id="operator without a side that may be dealt"),
        pytest.param(join_with(0.6, left=0.6, dealable=("right",)), Limits(), id="only the cold side may be dealt"),
        pytest.param(join_with(0.6, left=None), Limits(), id="the hot side is unknown"),
        pytest.param(join_with(0.6, left=0.6), Limits(split_keys=False), id="setting"),
        pytest.param(join_with(0.6, left=0.6), Limits(fixed_keys=frozenset(["ATL"])), id="key that rests"),
        pytest.param(join_with(0.6, left=0.3), Limits(max_bytes=20), id="copies that are too large"),
        pytest.param(join_with(0.12, left=0.12), Limits(), id="key below the mean"),
    ],
)
def test_key_is_not_split(snapshot, limits):
    assert not Hotspot().plan(snapshot, limits).splits


def test_side_that_may_be_dealt_is_dealt_if_it_is_hot_enough():
    assert Hotspot().plan(join_with(0.6, left=0.25, dealable=("left",))).splits[0].dealt == "left"


def test_longest_first_splits_nothing_but_sees_split_keys():
    assert not named("lpt").plan(join_with(0.6, left=0.6)).splits
    snapshot = shared((0.5, 0.1), 0.0)
    plan = named("lpt").plan(snapshot)
    assert not plan.gathers
    assert plan.imbalance_before == snapshot.imbalance == pytest.approx(2.4)


def test_rest_is_balanced_around_the_parts_of_a_split_key():
    split = SplitKey("ATL", 0, "left", (0, 1), (0.5, 0.5), 0.0)
    groups = [GroupLoad(group, 0, 0.25, 1) for group in range(8)]
    plan = Hotspot().plan(LoadSnapshot(WORKERS, groups, (), [split], ("left",)))
    assert (plan.splits, plan.gathers) == ((), ())
    assert plan.imbalance_after == pytest.approx(1.0)
    assert sorted(move.target for move in plan.moves) == [1, 2, 2, 2, 3, 3, 3]


def test_cool_key_is_gathered_with_the_reason_in_words():
    plan = Hotspot().plan(shared((0.01, 0.01, 0.01), 0.002))
    assert (plan.splits, plan.gathers) == ((), ("ATL",))
    assert "hot key 'ATL' has cooled to 0.24 times the mean load: it is no longer split" in plan.reason


@pytest.mark.parametrize("limits", [Limits(split_keys=False), Limits(kept_split=frozenset(["ATL"]))], ids=["setting", "not cool for long"])
def test_cool_key_stays_split(limits):
    assert not Hotspot().plan(shared((0.01, 0.01, 0.01), 0.002), limits).gathers


def test_key_with_nothing_to_deal_is_gathered():
    plan = Hotspot().plan(shared((0.2, 0.2, 0.2), 0.199))
    assert plan.gathers == ("ATL",)
    assert "has hardly any left rows left to deal" in plan.reason


def test_key_that_became_hotter_is_shared_by_more_workers():
    (split,) = Hotspot().plan(shared((0.5, 0.5), 0.01)).splits
    assert split == KeySplit("ATL", 0, (1, 2, 3), "left")


@given(
    loads=st.lists(st.floats(0.001, 5), min_size=1, max_size=6),
    lefts=st.lists(st.floats(0, 1), min_size=6, max_size=6),
    workers=st.integers(2, 8),
    dealable=st.sampled_from([("left",), ("right",), ("left", "right")]),
)
def test_a_split_key_lowers_the_load_and_is_not_gathered_by_the_next_plan(loads, lefts, workers, dealable):
    groups = [GroupLoad(at, at % workers, load + 0.1) for at, load in enumerate(loads)]
    keys = [KeyLoad(at, at, load, 0, None, load * part) for (at, load), part in zip(enumerate(loads), lefts, strict=False)]
    snapshot = LoadSnapshot(workers, groups, keys, (), dealable)
    changed = reshaped(snapshot)
    if changed.splits:
        hottest = max(loads)
        assert reachable_floor(snapshot) * snapshot.mean <= (hottest + 0.1) * (1 + 1e-9)
        assert changed.splits[0].dealt in dealable
        assert max(changed.snapshot.split_keys[0].loads) <= (1 - LEAST_GAIN) * hottest * (1 + 1e-9)
    assert not reshaped(changed.snapshot).gathers
    assert sum(group.load for group in changed.snapshot.key_groups) + sum(
        split.whole_load for split in changed.snapshot.split_keys
    ) == pytest.approx(sum(group.load for group in groups))


def test_plan_becomes_a_table_with_the_split_and_back():
    current = even_table(64, WORKERS)
    key = 12345
    group = int(group_of(np.array([key], np.uint64), 64)[0])
    home = int(current.groups[group])
    groups = [GroupLoad(g, int(current.groups[g]), 0.01 + (g == group)) for g in range(64)]
    plan = Hotspot().plan(LoadSnapshot(WORKERS, groups, [KeyLoad(key, group, 1.0, left=1.0)], (), ("left",)))
    target = plan.table(current, int)
    assert dict(target.splits) == {key: SplitRoute(home, tuple(w for w in range(WORKERS) if w != home), "left")}
    cool = SplitKey(key, group, "left", (home, (home + 1) % WORKERS), (0.0, 0.0))
    gathered = Hotspot().plan(LoadSnapshot(WORKERS, groups[:3] if group < 3 else [*groups[:3], groups[group]], (), [cool], ("left",)))
    assert not gathered.table(target, int).splits


def test_json_has_splits_and_gathers():
    document = json.loads(Hotspot().plan(join_with(0.6, left=0.6)).to_json())
    assert document["splits"] == [{"key": "ATL", "home": 0, "others": [1, 2, 3], "dealt": "left"}]
    assert json.loads(Hotspot().plan(shared((0.01, 0.01), 0.0)).to_json())["gathers"] == ["ATL"]
