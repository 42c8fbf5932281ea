"""The snapshot of balancers: the windows of all workers, merged by key group and hot key."""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.engine.errors import RecordError
from evenflow.engine.protocol.routing import RoutingTable, even_table
from evenflow.engine.protocol.split_route import SplitRoute
from evenflow.scheduler.load.load_snapshot import (
    MOST_BYTES,
    STEP_BYTES,
    STEPS,
    group_loads,
    groups_per_step,
    hash_of,
    hashes_of,
    load_snapshot,
)
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.state.hashing import group_of

TABLE, OTHER = RoutingTable(np.array([0, 0, 1, 1], np.uint16)), RoutingTable(np.array([1, 0, 1, 1], np.uint16))


def window(worker, loads, hot=(), length=1.0, records=100, state_bytes=0, left=(), start=0.0):
    groups = np.array(sorted(loads), np.int32)
    return WorkerWindow(
        f"count-{worker}",
        start,
        length,
        groups=groups,
        load=np.array([loads[group] for group in groups.tolist()]),
        hot_keys=tuple(hot),
        hot_left=tuple(left),
        keyed_records=records,
        state_bytes=state_bytes,
    )


def loads(snapshot):
    return [pytest.approx(group.load) for group in snapshot.key_groups]


def key_in(group):
    return next(key for key in range(1000) if group_of(np.array([hash_of(key)], np.uint64), 4)[0] == group)


def test_loads_are_useful_seconds_per_second_over_the_windows():
    snapshot = load_snapshot(
        [[window(0, {0: 0.5, 1: 0.1}), window(0, {0: 0.3}, length=3.0, start=1.0)], [window(1, {3: 0.2}, length=0.5)]], TABLE
    )
    assert snapshot.workers == 2
    assert [group.worker for group in snapshot.key_groups] == [0, 0, 1, 1]
    assert loads(snapshot) == [0.2, 0.025, 0.0, 0.4]


def test_a_group_that_has_moved_to_a_worker_that_joined_has_the_load_that_it_had():
    """Group 2 was at worker 0 for three seconds, and then for one at worker 1."""
    before = [window(0, {0: 0.5, 2: 0.25}, start=float(second)) for second in range(3)]
    snapshot = load_snapshot([[*before, window(0, {0: 0.5}, start=3.0)], [window(1, {2: 0.25}, start=3.0)]], TABLE)
    assert loads(snapshot) == [0.5, 0, 0.25, 0]


def test_worker_without_windows_has_no_load():
    assert loads(load_snapshot([[], [window(1, {2: 0.5})]], TABLE)) == [0, 0, 0.5, 0]


def test_state_is_shared_evenly_by_the_groups_of_its_worker():
    snapshot = load_snapshot([[window(0, {}, state_bytes=10), window(0, {}, state_bytes=1000)], [window(1, {}, state_bytes=5)]], TABLE)
    assert [group.state_bytes for group in snapshot.key_groups] == [500, 500, 2, 2]


def test_hot_key_has_its_share_of_the_records():
    key = key_in(0)
    snapshot = load_snapshot([[window(0, {0: 0.8}, hot=[(key, 75)])], []], TABLE)
    (found,) = snapshot.hot_keys
    assert (found.key, found.group, found.load, found.worker) == (key, 0, pytest.approx(0.6), None)


def test_hot_key_of_a_join_has_the_same_part_of_its_groups_state_as_of_its_load():
    key = key_in(0)
    joined = window(0, {0: 0.8, 1: 0.2}, hot=[(key, 20)], left=[20], state_bytes=2000)
    found = load_snapshot([[joined], []], TABLE).hot_keys
    assert [(each.key, each.state_bytes) for each in found] == [(key, 250)]
    (found,) = load_snapshot([[window(0, {0: 0.8}, hot=[(key, 75)], state_bytes=2000)], []], TABLE).hot_keys
    assert found.state_bytes == 0


def test_hot_keys_are_together_not_hotter_than_their_group():
    first, second = key_in(1), next(key for key in range(key_in(1) + 1, 1000) if group_of(np.array([hash_of(key)], np.uint64), 4)[0] == 1)
    snapshot = load_snapshot([[window(0, {0: 0.7, 1: 0.3}, hot=[(first, 25), (second, 20)])], []], TABLE)
    assert sum(key.load for key in snapshot.hot_keys) <= 0.3 + 1e-12
    assert [key.key for key in snapshot.hot_keys] == [first, second]


def test_hot_key_with_a_route_of_its_own_says_where_it_is():
    key = key_in(0)
    table = RoutingTable(TABLE.groups, {hash_of(key): 1})
    snapshot = load_snapshot([[window(0, {0: 0.1})], [window(1, {0: 0.4}, hot=[(key, 100)])]], table)
    assert loads(snapshot) == [0.5, 0, 0, 0]
    assert [(hot.group, hot.worker) for hot in snapshot.hot_keys] == [(0, 1)]
    assert snapshot.worker_loads().tolist() == [pytest.approx(0.1), pytest.approx(0.4)]


def test_each_worker_that_shares_a_key_has_its_part_of_it():
    key = key_in(0)
    table = RoutingTable(TABLE.groups, {}, {hash_of(key): SplitRoute(0, (1,), "left")})
    home, other = window(0, {0: 0.5}, hot=[(key, 50)], left=(40,)), window(1, {0: 0.4}, hot=[(key, 100)], left=(80,))
    snapshot = load_snapshot([[home], [other]], table, ("left",))
    assert loads(snapshot) == pytest.approx([0.25, 0, 0, 0])
    assert not snapshot.hot_keys
    (split,) = snapshot.split_keys
    assert (split.key, split.workers, split.dealt) == (key, (0, 1), "left")
    assert split.loads == pytest.approx((0.25, 0.4))
    assert split.copied == pytest.approx((0.05 + 0.08) / 2)
    assert snapshot.worker_loads() == pytest.approx([0.5, 0.4])


def test_hot_key_of_a_join_says_which_part_of_its_load_came_from_the_left():
    key = key_in(0)
    history = [window(0, {0: 0.8}, hot=[(key, 75)], left=(25,)), window(0, {0: 0.8}, hot=[(key, 75)], left=(75,), start=1.0)]
    (found,) = load_snapshot([history, []], TABLE, ("left", "right")).hot_keys
    assert (found.load, found.left) == pytest.approx((0.6, 0.4))


def test_split_key_that_no_window_names_is_dropped():
    table = RoutingTable(TABLE.groups, {}, {hash_of(key_in(0)): SplitRoute(0, (1,), "left")})
    assert not load_snapshot([[window(0, {0: 0.5})], [window(1, {0: 0.1})]], table, ("left",)).split_keys


def test_keys_are_hashed_as_the_engine_hashes_them():
    assert hash_of(("a", 1)) != hash_of("a")
    assert hash_of(("a",)) == hash_of("a")
    with pytest.raises(RecordError, match="can't be hashed"):
        hash_of({"a": 1})


def test_a_batched_step_has_about_so_many_bytes():
    assert groups_per_step([window(0, {0: 1.0}, state_bytes=STEP_BYTES // 2), None], TABLE, OTHER) == 4
    windows = [window(0, {0: 1.0}, state_bytes=STEP_BYTES // 2), window(1, {2: 1.0}, state_bytes=STEP_BYTES)]
    assert groups_per_step(windows, TABLE, OTHER) == 2


@pytest.mark.parametrize("size", [0, 100 * STEP_BYTES])
def test_a_batched_step_has_one_group_where_nothing_is_known_or_groups_are_large(size):
    assert groups_per_step([None, window(1, {2: 1.0}, state_bytes=size)], TABLE, OTHER) == 1


@pytest.mark.parametrize(("moved", "groups"), [(STEPS, 1), (STEPS + 1, 2), (2 * STEPS, 2), (4 * STEPS, 3)])
def test_steps_have_more_state_if_there_would_be_many(moved, groups):
    """Each group of worker 0 has a third of `MOST_BYTES`."""
    table = even_table(1024, 2)
    target = RoutingTable(np.where(np.arange(1024) < moved, np.uint16(1), table.groups))
    assert groups_per_step([window(0, {0: 1.0}, state_bytes=512 * MOST_BYTES // 3), None], table, target) == groups


def test_load_of_groups_is_the_sum_of_the_newest_windows_and_unknown_without_any():
    assert group_loads([window(0, {0: 0.5, 2: 0.25}), None, window(1, {2: 0.5})], TABLE).tolist() == [0.5, 0.0, 0.75, 0.0]
    assert group_loads([None, None], TABLE) is None


@pytest.mark.parametrize(
    "keys",
    [
        ["JFK", "ATL", "", "Zürich", "x" * 300],
        [5, -7, 2**62],
        [2**63, 1, -1],
        [2**63 - 1, -(2**63)],
        [1, 2.5, "JFK"],
        [("JFK", 1), ("ATL", 2)],
        [("JFK", None), ("ATL", 2)],
        [("JFK", 1), ("ATL", 2, 3)],
        [True, False],
        [None, "JFK"],
        [],
    ],
    ids=str,
)
def test_keys_that_are_hashed_together_have_the_hashes_that_they_have_alone(keys):
    assert hashes_of(keys) == [hash_of(key) for key in keys]
