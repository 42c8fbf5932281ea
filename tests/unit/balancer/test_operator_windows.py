"""Workers' windows become one snapshot of the operator, also while state moves and when a worker is late."""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.balancer.snapshot import KeyLoad, SplitKey
from evenflow.balancer.window import OperatorWindows, WorkerLoad, snapshot_of
from evenflow.engine.protocol.routing import RoutingTable, even_table
from evenflow.engine.protocol.split_route import SplitRoute

TABLE = even_table(4, 2)


def load(
    worker: int,
    start: float,
    loads: dict[int, float],
    keys: dict[int, float] | None = None,
    state_bytes: int = 0,
    left: dict[int, float] | None = None,
) -> WorkerLoad:
    keys, left = keys or {}, left or {}
    return WorkerLoad(
        worker,
        start,
        np.array(list(loads), np.int64),
        np.array(list(loads.values()), float),
        np.full(len(loads), state_bytes),
        np.array(list(keys), np.uint64),
        np.array(list(keys.values()), float),
        key_left=np.array([left.get(key, 0.0) for key in keys], float),
    )


def test_a_snapshot_waits_for_every_worker():
    windows = OperatorWindows(1.0)
    windows.add(load(0, 5.0, {0: 1.0}))
    assert windows.take(TABLE, 2) is None
    windows.add(load(1, 5.2, {3: 2.0}))
    snapshot = windows.take(TABLE, 2)
    assert snapshot is not None
    assert snapshot.group_loads.tolist() == [1, 0, 0, 2]
    assert snapshot.group_workers.tolist() == [0, 0, 1, 1]
    assert windows.take(TABLE, 2) is None


def test_windows_are_emitted_in_order():
    windows = OperatorWindows(0.5)
    for start in (1.5, 1.0):
        for worker in (0, 1):
            windows.add(load(worker, start, {worker * 2: start}))
    taken = [windows.take(TABLE, 2) for _ in range(3)]
    assert [None if s is None else s.group_loads.max() for s in taken] == [1.0, 1.5, None]


def test_a_late_worker_is_taken_at_its_last_window():
    windows = OperatorWindows(1.0, patience=2)
    for worker in (0, 1):
        windows.add(load(worker, 1.0, {worker * 2: 1.0}))
    assert windows.take(TABLE, 2) is not None
    for start in (2.0, 3.0):
        windows.add(load(0, start, {0: 3.0}))
        assert windows.take(TABLE, 2) is None
    windows.add(load(0, 4.0, {0: 3.0}))
    snapshot = windows.take(TABLE, 2)
    assert snapshot is not None
    assert snapshot.worker_loads().tolist() == [3.0, 1.0]


def test_a_window_that_comes_too_late_only_counts_as_the_last():
    windows = OperatorWindows(1.0, patience=1)
    for worker in (0, 1):
        windows.add(load(worker, 1.0, {worker * 2: 1.0}))
    windows.take(TABLE, 2)
    windows.add(load(0, 2.0, {0: 1.0}))
    windows.add(load(0, 3.0, {0: 1.0}))
    assert windows.take(TABLE, 2) is not None
    windows.add(load(1, 2.0, {2: 7.0}))
    assert windows.take(TABLE, 2) is None
    windows.add(load(0, 4.0, {0: 1.0}))
    snapshot = windows.take(TABLE, 2)
    assert snapshot is not None
    assert snapshot.worker_loads().tolist() == [1.0, 7.0]


def test_a_worker_that_has_not_reported_is_not_taken_for_idle():
    windows = OperatorWindows(1.0, patience=1)
    for start in (1.0, 2.0, 3.0):
        windows.add(load(0, start, {0: 1.0}))
    assert [windows.take(TABLE, 2) for _ in range(4)] == [None] * 4


def test_a_group_on_its_way_has_the_load_of_both_its_workers():
    snapshot = snapshot_of([load(0, 0.0, {1: 0.5}, state_bytes=10), load(1, 0.0, {1: 0.25}, state_bytes=20)], TABLE, 2)
    assert (snapshot.group_loads[1], snapshot.group_bytes[1]) == (0.75, 30)


def test_hot_keys_keep_their_routes():
    table = RoutingTable(TABLE.groups, {4: 1})
    snapshot = snapshot_of([load(0, 0.0, {0: 1.0}, {8: 0.5}), load(1, 0.0, {0: 2.0}, {4: 1.5})], table, 2)
    assert set(snapshot.hot_keys) == {KeyLoad(4, 0, 1.5, 0, 1), KeyLoad(8, 0, 0.5)}
    assert snapshot.worker_loads().tolist() == [1.5, 1.5]


def test_each_worker_that_shares_a_key_has_its_part_of_it():
    table = RoutingTable(TABLE.groups, {}, {4: SplitRoute(0, (1,), "left")})
    home = load(0, 0.0, {0: 1.0}, {4: 0.75, 8: 0.125}, left={4: 0.5})
    snapshot = snapshot_of([home, load(1, 0.0, {0: 2.0}, {4: 2.0}, left={4: 1.75})], table, 2, ("left",))
    assert snapshot.hot_keys == (KeyLoad(8, 0, 0.125, left=0.0),)
    assert snapshot.group_loads[0] == 0.25
    assert snapshot.split_keys == (SplitKey(4, 0, "left", (0, 1), (0.75, 2.0), 0.25),)
    assert snapshot.worker_loads().tolist() == [1.0, 2.0]


def test_worker_that_did_not_report_a_key_that_it_shares_has_what_it_measured_for_its_group():
    table = RoutingTable(TABLE.groups, {12: 1}, {4: SplitRoute(0, (1,), "right")})
    snapshot = snapshot_of([load(0, 0.0, {0: 1.0}), load(1, 0.0, {0: 0.5})], table, 2, ("right",))
    (split,) = snapshot.split_keys
    assert (split.loads, split.copied) == ((0.0, 0.5), 0.0)
    assert [(key.key, key.load) for key in snapshot.hot_keys] == [(12, 0.0)]
    assert snapshot.group_loads[0] == 1.0


def test_home_of_a_split_key_away_from_its_group_keeps_its_part():
    table = RoutingTable(TABLE.groups, {}, {4: SplitRoute(1, (0,), "left")})
    snapshot = snapshot_of([load(0, 0.0, {0: 1.0}, {4: 0.25}), load(1, 0.0, {0: 0.5}, {4: 0.5})], table, 2, ("left",))
    assert not snapshot.hot_keys
    assert snapshot.split_keys[0].loads == (0.5, 0.25)
    assert snapshot.worker_loads().tolist() == [1.0, 0.5]


def test_a_routed_key_that_cooled_down_has_what_its_worker_measured():
    table = RoutingTable(TABLE.groups, {4: 1, 8: 1, 12: 1})
    snapshot = snapshot_of([load(0, 0.0, {0: 1.0}), load(1, 0.0, {0: 1.0}, {12: 0.6})], table, 2)
    assert {key.key: key.load for key in snapshot.hot_keys} == pytest.approx({4: 0.2, 8: 0.2, 12: 0.6})
    assert snapshot.worker_loads().tolist() == pytest.approx([1.0, 1.0])


def test_estimates_of_keys_are_cut_to_their_group():
    snapshot = snapshot_of([load(0, 0.0, {0: 1.0}, {4: 1.5, 8: 0.5})], TABLE, 2)
    assert [key.load for key in snapshot.hot_keys] == [0.75, 0.25]
