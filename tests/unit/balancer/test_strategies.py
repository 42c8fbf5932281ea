"""Every strategy makes exactly the difference of two routing tables, each in its own steps."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.balancer.strategies import STRATEGIES, Step, batched, fluid, plan_steps
from evenflow.engine.errors import RequestError
from evenflow.engine.protocol.routing import Move, RoutingTable, even_table
from evenflow.engine.protocol.split_route import SplitRoute

KEY_GROUPS = 8
WORKERS = 6
HASHES = np.arange(3 * KEY_GROUPS).astype(np.uint64)

workers = st.integers(0, WORKERS - 1)
tables = st.builds(
    lambda groups, keys: RoutingTable(np.array(groups, np.uint16), keys),
    st.lists(workers, min_size=KEY_GROUPS, max_size=KEY_GROUPS),
    st.dictionaries(st.sampled_from(HASHES.tolist()), workers, max_size=8),
)
splits = st.dictionaries(
    st.sampled_from(HASHES.tolist()),
    st.builds(SplitRoute, workers, st.lists(workers, max_size=4), st.sampled_from(["left", "right"])),
    max_size=4,
)
tables_with_splits = st.builds(lambda table, splits: RoutingTable(table.groups, table.keys, splits), tables, splits)
every_strategy = pytest.mark.parametrize("name", STRATEGIES)


def table(groups: list[int], keys: dict[int, int] | None = None) -> RoutingTable:
    return RoutingTable(np.array(groups, np.uint16), keys or {})


def pieces(step: Step) -> list[tuple[str, int]]:
    return [("group", g) for move in step.moves for g in move.groups] + [("key", k) for move in step.moves for k in move.keys]


@every_strategy
@given(current=tables, target=tables)
def test_the_steps_lead_to_the_target(name, current, target):
    for step in plan_steps(name, current, target):
        current = current.after(step.moves)
    assert current == target


@every_strategy
@given(current=tables_with_splits, target=tables_with_splits)
def test_the_steps_lead_to_the_target_and_its_split_keys(name, current, target):
    for step in plan_steps(name, current, target):
        for move in step.moves:
            moving = HASHES[move.selects(HASHES, KEY_GROUPS)].tolist()
            assert {key % KEY_GROUPS for key in moving} <= move.touches(KEY_GROUPS)
            returning = {key for key, _ in move.returns}
            assert not {*current.splits} & {*moving} - returning, "a key that moves is not split"
            assert not (move.copies or move.returns) or not (move.groups or move.keys or step.lazy)
        current = current.after(step.moves)
    assert current == target


@every_strategy
@given(current=tables, target=tables)
def test_every_key_moves_once_and_straight_to_its_new_worker(name, current, target):
    first, last = current.owners(HASHES), target.owners(HASHES)
    moved = np.zeros(len(HASHES), int)
    for step in plan_steps(name, current, target):
        before, after = current.owners(HASHES), current.after(step.moves).owners(HASHES)
        for move in step.moves:
            mask = move.selects(HASHES, KEY_GROUPS)
            assert (before[mask] == move.source).all()
            assert (after[mask] == move.target).all()
            moved += mask
        current = current.after(step.moves)
    assert moved.tolist() == (first != last).astype(int).tolist()


@every_strategy
@given(current=tables, target=tables)
def test_no_group_and_no_key_appears_twice(name, current, target):
    seen = [piece for step in plan_steps(name, current, target) for piece in pieces(step)]
    assert len(seen) == len(set(seen))


@every_strategy
@given(current=tables, target=tables)
def test_no_step_is_empty_and_none_has_two_moves_for_a_pair_of_workers(name, current, target):
    for step in plan_steps(name, current, target):
        pairs = [(move.source, move.target) for move in step.moves]
        assert pairs
        assert len(pairs) == len(set(pairs))
        assert all(move.groups or move.keys for move in step.moves)


@every_strategy
@given(current=tables)
def test_equal_tables_need_no_step(name, current):
    assert list(plan_steps(name, current, current)) == []


@given(tables, tables)
def test_fluid_moves_one_piece_at_a_time(current, target):
    assert all(len(pieces(step)) == 1 for step in fluid(current, target))


@given(tables, tables, st.integers(1, 5))
def test_batched_steps_use_every_worker_in_one_pair_at_most(current, target, groups_per_move):
    for step in batched(current, target, groups_per_move):
        used = [worker for move in step.moves for worker in (move.source, move.target)]
        assert len(used) == len(set(used))
        assert all(1 <= len(move.groups) + len(move.keys) <= groups_per_move for move in step.moves)


@given(tables, tables)
def test_batched_takes_fewer_steps_than_twice_the_pieces_of_the_busiest_worker(current, target):
    pieces_of = Counter(
        worker for move in current.moves_to(target) for worker in (move.source, move.target) for _ in (*move.groups, *move.keys)
    )
    assert len(list(batched(current, target))) < max(1, 2 * max(pieces_of.values(), default=0)) or current == target


def test_batched_moves_disjoint_pairs_at_the_same_time():
    steps = list(batched(table([0, 0, 1, 1]), table([2, 2, 3, 3])))
    assert steps == [
        Step((Move(0, 2, groups=(0,)), Move(1, 3, groups=(2,)))),
        Step((Move(0, 2, groups=(1,)), Move(1, 3, groups=(3,)))),
    ]


def test_batched_moves_several_groups_of_a_pair_if_a_step_may_have_several():
    assert [pieces(step) for step in batched(table([0, 0, 0, 1]), table([1, 1, 1, 1]), 2)] == [
        [("group", 0), ("group", 1)],
        [("group", 2)],
    ]


def test_batched_takes_several_groups_a_step_and_fluid_one():
    current, target = table([0, 0, 0, 0]), table([1, 1, 1, 0])
    assert [len(list(plan_steps(name, current, target, 2))) for name in ("batched", "fluid", "sudden")] == [2, 3, 1]


@pytest.mark.parametrize(("groups", "each", "steps"), [(8, 1, 1), (32, 1, 4), (1024, 1, 32), (1024, 64, 16), (1024, 33, 32), (64, 16, 4)])
def test_lazy_moves_are_cut_into_at_most_32_steps_of_at_least_8_groups(groups, each, steps):
    current, target = table(groups * [0]), table(groups * [1])
    planned = list(plan_steps("lazy", current, target, each))
    sizes = [len(step.moves[0].groups) for step in planned]
    assert len(planned) == steps
    assert set(sizes[:-1]) <= {max(each, 8, -(-groups // 32))}
    assert sum(sizes) == groups
    assert all(step.lazy for step in planned)


def test_batched_refuses_to_move_nothing():
    with pytest.raises(RequestError, match="groups_per_move is 0"):
        list(batched(table([0]), table([1]), 0))


def test_a_key_with_a_route_of_its_own_is_not_dragged_along():
    (step,) = plan_steps("fluid", table([0, 0], {2: 1}), table([1, 0], {4: 0, 2: 1}))
    assert step.moves == (Move(0, 1, groups=(0,), staying=(2, 4)),)


@pytest.mark.parametrize(
    ("name", "pause", "restart"),
    [("sudden", False, False), ("pause", True, False), ("restart", False, True)],
)
def test_one_step_says_how_it_is_made(name, pause, restart):
    current, target = even_table(8, 2), even_table(8, 4)
    assert list(plan_steps(name, current, target)) == [Step(tuple(current.moves_to(target)), pause=pause, restart=restart)]


def test_an_unknown_strategy_is_answered_with_the_known_ones():
    with pytest.raises(RequestError, match="'smooth' is not a migration strategy: use one of restart, pause, sudden, fluid, batched, lazy"):
        plan_steps("smooth", even_table(8, 2), even_table(8, 3))


def test_groups_with_the_most_load_move_first_and_those_of_the_busiest_worker_before_others():
    current, target = table([0, 0, 1, 1, 2, 2, 2, 2]), table([2] * 8)
    loads = np.array([1.0, 2.0, 4.0, 8.0, 99.0, 0.0, 0.0, 0.0])
    for name in ("fluid", "batched"):
        assert [step.moves[0].groups for step in plan_steps(name, current, target, 1, loads)] == [(3,), (2,), (1,), (0,)]


def test_key_with_a_route_of_its_own_moves_before_groups():
    current, target = even_table(4, 1), RoutingTable(np.array([1, 0, 0, 0], np.uint16), {6: 1})
    steps = list(plan_steps("fluid", current, target, 1, np.ones(4)))
    assert [(step.moves[0].keys, step.moves[0].groups) for step in steps] == [((6,), ()), ((), (0,))]


@pytest.mark.parametrize("name", ["fluid", "batched", "lazy"])
@given(current=tables, target=tables, loads=st.lists(st.floats(0.0, 10.0), min_size=KEY_GROUPS, max_size=KEY_GROUPS))
def test_loads_change_nothing_but_the_order(name, current, target, loads):
    steps = list(plan_steps(name, current, target, 1, np.array(loads)))
    for step in steps:
        current = current.after(step.moves)
    assert current == target
    assert sum(map(len, map(pieces, steps))) == len({piece for step in steps for piece in pieces(step)})
