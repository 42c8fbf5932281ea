"""Rows of a split key: one side is dealt, the other goes to every worker that shares the key."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from evenflow.engine.batch import Batch
from evenflow.engine.joins.sides import LEFT, RIGHT
from evenflow.engine.protocol.restored_keys import RestoredKeys
from evenflow.engine.protocol.routing import Move, RoutingTable
from evenflow.engine.protocol.split_route import SplitRoute
from evenflow.engine.task.hash_exchange import HashExchange
from evenflow.state.hashing import hash64

HOT, COLD = hash64(pa.array(["hot", "cold"])).tolist()
EVEN = np.array([0, 1, 2, 0], np.uint16)
SPLIT = RoutingTable(EVEN, {HOT: 1, COLD: 2}, {HOT: SplitRoute(1, (0,), "left")})
HASHES = np.array([HOT, COLD], np.uint64)


def received(table, batches):
    """Return the numbers of the rows that each of three workers gets, from batches of (side, keys)."""
    exchange, sent, number = HashExchange([0, 1, 2], 1_000, "join", ("__key0",), table), [], 0
    for side, keys in batches:
        rows = pa.record_batch({"key": keys, "n": range(number, number + len(keys))})
        number += len(keys)
        exchange.push(side.tag(Batch(rows, rows.column("n").to_numpy()), ("key",)), 0.0, sent)
    exchange.flush(sent)
    got = {0: [], 1: [], 2: []}
    for element in sent:
        got[element.channel] += element.element.times.tolist()
    return got


def test_dealt_rows_go_to_the_workers_in_turn_across_batches():
    got = received(SPLIT, [(LEFT, ["hot", "cold", "hot"]), (LEFT, ["hot"])])
    assert got == {1: [0, 3], 0: [2], 2: [1]}


def test_copied_rows_go_to_every_worker_that_shares_the_key_in_their_order():
    assert received(SPLIT, [(RIGHT, ["hot", "cold", "hot"]), (RIGHT, ["hot"])]) == {1: [0, 2, 3], 0: [0, 2, 3], 2: [1]}


def test_each_pair_meets_once():
    got = received(SPLIT, [(LEFT, ["hot", "cold"] * 5), (RIGHT, ["hot", "cold"] * 5)])
    pairs = Counter(
        (left, right) for rows in got.values() for left in rows for right in rows if left < 10 <= right and (left - right) % 2 == 0
    )
    assert pairs == Counter((left, right) for left in range(10) for right in range(10, 20) if (left - right) % 2 == 0)


def test_the_owner_of_a_split_key_is_its_home():
    assert SPLIT.owners(HASHES).tolist() == [1, 2]
    assert RoutingTable(EVEN, {HOT: 2}, dict(SPLIT.splits)).owners(HASHES)[0] == 1, "whatever other route it has"


def test_a_split_over_the_home_alone_is_none():
    assert not RoutingTable(EVEN, {}, {HOT: SplitRoute(1, (1,), "left")}).splits


def test_a_table_with_split_keys_survives_pickling():
    copy = pickle.loads(pickle.dumps(SPLIT))
    assert copy == SPLIT != RoutingTable(EVEN, SPLIT.keys)
    assert hash(copy) == hash(SPLIT)


def test_workers_begin_and_end_to_share_a_key_in_one_step():
    target = RoutingTable(EVEN, SPLIT.keys, {HOT: SplitRoute(1, (2,), "left")})
    moves = SPLIT.moves_to(target)
    assert moves == [Move(0, 1, returns=((HOT, "left"),)), Move(1, 2, copies=((HOT, "left"),))]
    assert SPLIT.after(moves) == SPLIT.after(moves[::-1]) == target


@pytest.mark.parametrize("split", [SplitRoute(1, (0,), "right"), SplitRoute(0, (1,), "left")], ids=["side", "home"])
def test_a_split_key_gets_no_other_home_or_dealt_side_in_one_step(split):
    with pytest.raises(ValueError, match="can't be split and get another home or dealt side in one step"):
        SPLIT.moves_to(RoutingTable(EVEN, SPLIT.keys, {HOT: split}))


def test_a_group_moves_without_its_split_key():
    group = int(HOT % 4)
    groups = EVEN.copy()
    groups[group] = (groups[group] + 1) % 3
    for move in SPLIT.moves_to(RoutingTable(groups, SPLIT.keys, SPLIT.splits)):
        assert not move.selects(HASHES[:1], 4).any()


def taken(keys, side, saved_by):
    """Return the workers that restore a row of the hot key."""
    return [worker for worker in range(3) if keys.of(worker, saved_by, HASHES[:1], side)[0]]


def test_every_worker_restores_what_it_saved_of_a_key_that_is_still_split():
    keys = RestoredKeys(SPLIT, SPLIT, same=True)
    assert all(keys.of(worker, worker, HASHES[:1], side)[0] for worker in (0, 1) for side in ("left", "right"))
    assert not keys.of(2, 2, HASHES[:1], "left")[0]


def test_dealt_rows_of_all_and_copied_rows_of_the_home_are_restored_where_the_key_is_now():
    keys = RestoredKeys(RoutingTable(EVEN, {HOT: 2}), SPLIT)
    assert [taken(keys, side, saved_by) for side in ("left", "right") for saved_by in (1, 0)] == [[2], [2], [2], []]


def test_copied_rows_are_restored_at_every_worker_that_shares_the_key_now():
    keys = RestoredKeys(RoutingTable(EVEN, {}, {HOT: SplitRoute(2, (0, 1), "right")}), SPLIT)
    assert [taken(keys, side, saved_by) for side in ("left", "right") for saved_by in (1, 0)] == [[0, 1, 2], [0, 1, 2], [2], []]
