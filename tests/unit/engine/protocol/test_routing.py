"""Moves cover exactly the difference of two routing tables, and every task selects the same keys by them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.protocol.routing import Move, RoutingTable, even_table

KEY_GROUPS = 8
WORKERS = 4
HASHES = np.array([*range(3 * KEY_GROUPS), 2**64 - 1, 2**63, 2**63 + 5], np.uint64)

workers = st.integers(0, WORKERS - 1)
tables = st.builds(
    lambda groups, keys: RoutingTable(np.array(groups, np.uint16), keys),
    st.lists(workers, min_size=KEY_GROUPS, max_size=KEY_GROUPS),
    st.dictionaries(st.sampled_from(HASHES.tolist()), workers, max_size=12),
)


def table(groups: list[int], keys: dict[int, int] | None = None) -> RoutingTable:
    return RoutingTable(np.array(groups, np.uint16), keys or {})


@given(tables, tables)
def test_moves_lead_to_the_target(current, target):
    after = current.after(current.moves_to(target))
    assert after == target
    assert after.owners(HASHES).tolist() == target.owners(HASHES).tolist()


@given(tables, tables)
def test_moves_select_exactly_the_keys_whose_worker_changes(current, target):
    before, after = current.owners(HASHES), target.owners(HASHES)
    selected = np.zeros(len(HASHES), int)
    for move in current.moves_to(target):
        mask = move.selects(HASHES, KEY_GROUPS)
        assert (before[mask] == move.source).all()
        assert (after[mask] == move.target).all()
        selected += mask
    assert selected.tolist() == (before != after).astype(int).tolist()


@given(tables, tables)
def test_there_is_one_move_per_pair_of_workers_and_none_from_a_worker_to_itself(current, target):
    pairs = [(move.source, move.target) for move in current.moves_to(target)]
    assert pairs == sorted(set(pairs))
    assert all(source != target for source, target in pairs)


@given(tables, tables, st.randoms(use_true_random=False))
def test_the_order_of_the_moves_does_not_matter(current, target, random):
    moves = current.moves_to(target)
    random.shuffle(moves)
    for move in moves:
        before = current.owners(HASHES)
        current = current.after([move])
        changed = before != current.owners(HASHES)
        assert changed.tolist() == move.selects(HASHES, KEY_GROUPS).tolist()
    assert current == target


@given(tables)
def test_nothing_moves_between_equal_tables(current):
    assert current.moves_to(current) == []
    assert current.after([]) == current


@given(tables)
def test_a_table_survives_pickling(current):
    copy = pickle.loads(pickle.dumps(current))
    assert copy == current
    assert hash(copy) == hash(current)


@given(tables)
def test_a_key_belongs_to_its_own_route_or_else_to_its_group(current):
    expected = [current.keys.get(key, int(current.groups[key % KEY_GROUPS])) for key in HASHES.tolist()]
    assert current.owners(HASHES).tolist() == expected


def test_a_route_to_the_worker_of_the_group_is_dropped():
    assert dict(table([0, 1], {2: 0, 3: 0}).keys) == {3: 0}


def test_a_key_that_stays_while_its_group_moves_gets_a_route():
    current, target = table([0, 0]), table([1, 0], {2: 0})
    (move,) = current.moves_to(target)
    assert move == Move(0, 1, groups=(0,), staying=(2,))
    assert current.after([move]) == target


def test_a_key_at_the_groups_new_worker_already_is_not_set_aside_there():
    current = table([0, 0], {2: 1})
    (move,) = current.moves_to(table([1, 0]))
    assert not move.selects(np.array([2], np.uint64), 2).any()


def test_a_key_and_its_group_can_change_places():
    current, target = table([0, 0], {2: 1}), table([1, 0], {2: 0})
    assert current.moves_to(target) == [Move(0, 1, groups=(0,), staying=(2,)), Move(1, 0, keys=(2,))]


def test_a_key_loses_its_route_when_it_comes_home():
    assert table([0, 1], {2: 1}).after([Move(1, 0, keys=(2,))]) == table([0, 1])


def test_tables_of_different_sizes_have_no_moves():
    with pytest.raises(ValueError, match="8 key groups can't become one of 4"):
        even_table(8, 2).moves_to(even_table(4, 2))


@given(st.integers(0, 8), st.integers(1, 64))
def test_the_first_table_is_even(power, count):
    sizes = np.bincount(even_table(2**power, count).groups, minlength=count)
    assert len(sizes) == count
    assert sizes.max() - sizes.min() <= 1


@given(tables)
def test_a_pickled_table_has_no_separate_buffers(current):
    beside = []
    assert pickle.loads(pickle.dumps(current, protocol=5, buffer_callback=beside.append)) == current
    assert beside == []
