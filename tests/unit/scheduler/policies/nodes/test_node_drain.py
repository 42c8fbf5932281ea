"""Returning a node: no worker stays on it, and every operator keeps a worker."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.scheduler.policies.nodes.node_plans import node_drain

NODES = ("a", "b", "c")


@st.composite
def jobs(draw):
    workers = {name: draw(st.integers(1, 6)) for name in ("source", "map", "count")[: draw(st.integers(1, 3))]}
    scalable = {name for name in workers if draw(st.booleans())}
    places = {f"{name}-{i}": draw(st.sampled_from(NODES)) for name, count in workers.items() for i in range(count)}
    return workers, scalable, places


@given(jobs())
def test_workers_that_stay_and_are_not_replaced_are_on_other_nodes(job):
    workers, scalable, places = job
    plan = node_drain(workers, scalable, places, "a")
    after = {**workers, **plan.parallelism}
    stay = [f"{name}-{i}" for name, count in after.items() for i in range(count)]
    assert set(plan.replaced) == {worker for worker in stay if places[worker] == "a"}


@given(jobs())
def test_every_operator_loses_those_on_the_node_and_keeps_one(job):
    workers, scalable, places = job
    plan = node_drain(workers, scalable, places, "a")
    for name, count in workers.items():
        here = sum(places[f"{name}-{i}"] == "a" for i in range(count))
        expected = max(1, count - here) if name in scalable else count
        assert plan.parallelism.get(name, count) == expected
    assert set(plan.parallelism) <= scalable


def test_the_last_added_node_is_given_back_without_replacing_a_worker():
    plan = node_drain({"count": 4}, {"count"}, {"count-0": "a", "count-1": "b", "count-2": "c", "count-3": "c"}, "c")
    assert (dict(plan.parallelism), plan.replaced) == ({"count": 2}, ())
