"""Placement of new workers: every plan uses only free CPUs, `spread` evens out, `pack` uses as few nodes as possible."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import ClusterError
from evenflow.scheduler.policies.nodes.placement import PACK, SPREAD, STRATEGIES, ClusterNode, NoRoomError, place

CPUS = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0])


def placed(nodes, count, cpus, strategy, avoid=()):
    """Place `count` workers that set the same number of CPUs aside."""
    return place(nodes, [{"CPU": cpus} if cpus else {}] * count, strategy, avoid)


@st.composite
def clusters(draw):
    nodes = []
    for number in range(draw(st.integers(1, 6))):
        cpus = draw(st.sampled_from([0, 1, 2, 4, 16]))
        nodes.append(ClusterNode(f"node-{number}", cpus, draw(st.integers(0, cpus * 10)) / 10, draw(st.integers(0, 5))))
    return nodes


@given(clusters(), st.integers(0, 12), CPUS, st.sampled_from(STRATEGIES))
def test_a_plan_sets_aside_no_more_than_is_free_and_fails_only_if_there_is_none(nodes, count, cpus, strategy):
    room = sum(node.free_slots(cpus) for node in nodes)
    if cpus and room < count:
        with pytest.raises(NoRoomError) as caught:
            placed(nodes, count, cpus, strategy)
        assert len(caught.value.missing) == count - room
        return
    plan = placed(nodes, count, cpus, strategy)
    assert len(plan) == count
    for node in nodes:
        assert not cpus or plan.count(node.name) <= node.free_slots(cpus)


@given(clusters(), st.integers(1, 12), CPUS, st.sampled_from(STRATEGIES), st.integers(0, 5))
def test_a_node_to_avoid_gets_no_worker(nodes, count, cpus, strategy, which):
    avoid = nodes[which % len(nodes)].name
    try:
        plan = placed(nodes, count, cpus, strategy, {avoid})
    except NoRoomError:
        return
    assert avoid not in plan


@given(st.integers(1, 6), st.integers(1, 30), st.sampled_from([0.0, 0.5, 1.0]))
def test_spread_leaves_equal_nodes_with_equal_numbers(count, workers, cpus):
    nodes = [ClusterNode(f"node-{number}", 32, 32) for number in range(count)]
    plan = placed(nodes, workers, cpus, SPREAD)
    numbers = [plan.count(node.name) for node in nodes]
    assert max(numbers) - min(numbers) <= 1


@given(clusters(), st.integers(1, 12), CPUS)
def test_spread_never_adds_to_a_node_while_one_with_a_slot_has_fewer(nodes, count, cpus):
    try:
        plan = placed(nodes, count, cpus, SPREAD)
    except NoRoomError:
        return
    *_, last = plan
    before = {node.name: node.workers + plan[:-1].count(node.name) for node in nodes}
    left = {node.name: node.free_slots(cpus) - plan[:-1].count(node.name) for node in nodes}
    if left[last] > 0:
        assert before[last] == min(before[name] for name in before if left[name] > 0)


@given(clusters(), st.integers(1, 12), CPUS)
def test_pack_opens_a_node_only_when_those_in_use_are_full(nodes, count, cpus):
    try:
        plan = placed(nodes, count, cpus, PACK)
    except NoRoomError:
        return
    there = {node.name: node.workers for node in nodes}
    left = {node.name: node.free_slots(cpus) for node in nodes}
    for name in plan:
        if not there[name] and left[name] > 0:
            assert not any(there[other] and left[other] > 0 for other in there)
        there[name] += 1
        left[name] -= 1


@given(clusters(), st.integers(1, 12), CPUS, st.sampled_from(STRATEGIES))
def test_the_same_cluster_listed_in_another_order_gives_the_same_plan(nodes, count, cpus, strategy):
    try:
        plan = placed(nodes, count, cpus, strategy)
    except NoRoomError:
        return
    assert placed(nodes[::-1], count, cpus, strategy) == plan


def test_workers_that_set_nothing_aside_always_find_room_and_fill_slots_first():
    head, big, small = ClusterNode("head", 0, 0), ClusterNode("big", 4, 4), ClusterNode("small", 1, 1)
    plan = placed([head, big, small], 10, 0.0, SPREAD)
    assert set(plan[:5]) == {"big", "small"}
    assert "head" not in plan
    assert plan.count("big") == 8


def test_a_worker_too_many_is_an_error_that_lists_the_free_cpus_of_each_node():
    nodes = [ClusterNode("0123456789abcdef", 2, 0.5, 3), ClusterNode("fedcba9876543210", 2, 0)]
    with pytest.raises(NoRoomError, match=r"no room for 1 of 1 worker: each needs 0.6 CPUs; free: 0.5 of 2 on node 01234567, 0 of 2"):
        placed(nodes, 1, 0.6, SPREAD)
    with pytest.raises(NoRoomError, match="no room for 2 of 2 workers: the job may use no node"):
        placed(nodes, 2, 0.6, SPREAD, {node.name for node in nodes})


def test_the_error_crosses_processes_as_a_cluster_error():
    error = pickle.loads(pickle.dumps(NoRoomError([{"CPU": 1.0}], 2, [])))
    assert type(error) is ClusterError
    assert str(error) == "no room for 1 of 2 workers: the job may use no node"


NEEDS = st.sampled_from([{}, {"CPU": 1.0}, {"GPU": 1.0}, {"CPU": 0.5, "GPU": 0.5}, {"memory": 3.0}, {"CPU": 1.0, "tpu": 1.0}])
OTHERS = st.fixed_dictionaries({"memory": st.integers(0, 9)}, optional={"GPU": st.integers(0, 3), "tpu": st.integers(0, 2)})


@given(clusters(), st.lists(OTHERS, min_size=6, max_size=6), st.lists(NEEDS, max_size=8), st.sampled_from(STRATEGIES))
def test_no_node_gives_more_of_any_resource_than_it_has_free(nodes, others, needs, strategy):
    nodes = [replace(node, others=other) for node, other in zip(nodes, others, strict=False)]
    try:
        plan = place(nodes, needs, strategy)
    except NoRoomError:
        return
    for node in nodes:
        taken = [need for need, name in zip(needs, plan, strict=True) if name == node.name]
        for name in {"CPU", *node.others}:
            assert sum(need.get(name, 0.0) for need in taken) <= (node.free if name == "CPU" else node.others[name]) + 1e-6
        assert all(set(need) <= {"CPU", *node.others} for need in taken)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nodes_with_gpus_are_left_to_workers_that_need_one_while_others_have_slots(strategy):
    nodes = [ClusterNode("plain", 2, 2), ClusterNode("gpus", 2, 2, others={"GPU": 1})]
    assert place(nodes, [{"CPU": 1}, {"CPU": 1}, {"CPU": 1}, {"CPU": 1, "GPU": 1}], strategy) == ("plain", "plain", "gpus", "gpus")


def test_the_error_lists_what_is_free_of_each_resource_that_a_worker_without_a_place_needs():
    nodes = [ClusterNode("a", 2, 1.5, others={"GPU": 0.0, "memory": 8e9}), ClusterNode("b", 4, 4)]
    expected = "no room for 1 of 2 workers: each needs 1 CPU, 1 GPU; free: 1.5 of 2 CPUs, 0 GPUs on node a, 4 of 4 CPUs, 0 GPUs on node b"
    with pytest.raises(NoRoomError, match=expected):
        place(nodes, [{"CPU": 1.0, "GPU": 1.0}, {"CPU": 1.0}], SPREAD)
