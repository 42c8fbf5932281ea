"""Jobs on a cluster of three nodes, each with room for four workers; `several_nodes.py` runs them."""

from __future__ import annotations

from collections import Counter

import pytest

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(420),
]  # a process of Ray's takes from one second to ten to start, by how busy the machine is


@pytest.fixture
def seen(seen_on_several_nodes):
    return seen_on_several_nodes


def test_pack_uses_the_fewest_nodes_with_slots_even_if_they_joined_after_the_job(seen):
    alone, before = seen["packed"]["alone"], seen["packed"]["before"]
    assert len(set(alone.values())) == 1
    assert len(alone) == 4, "as many as the node has slots"
    assert {before["slow-2"], before["slow-3"]}.isdisjoint(alone.values())
    assert before["slow-2"] == before["slow-3"]


def test_an_added_node_gets_the_workers_of_the_operator_that_lags_behind(seen):
    packed = seen["packed"]
    (added,) = packed["added"]
    assert added not in packed["before"].values()
    before, after = packed["parallelism"]["slow"]
    assert [packed["after"][f"slow-{i}"] for i in range(before, after)] == [added] * (after - before)


def test_the_added_node_is_given_back_without_replacing_a_worker(seen):
    packed = seen["packed"]
    assert [packed["removed"]] == packed["added"]
    assert packed["replaced"] == []
    assert packed["at_the_end"] == packed["before"]
    assert packed["correct"]


def test_a_page_plans_nodes_as_the_job_then_scales_them(seen):
    packed = seen["packed"]
    assert packed["planned_out"] == packed["added"]
    assert packed["planned_in"] == packed["removed"]


def test_spread_gives_every_node_the_same_number_of_workers(seen):
    counts = Counter(seen["spread"]["before"].values())
    assert len(counts) == 3
    assert max(counts.values()) - min(counts.values()) <= 1


def test_processes_without_cpus_are_where_the_plan_has_them_and_none_on_a_head_without_cpus(seen):
    job = seen["without_cpus"]
    counts = Counter(job["before"].values())
    assert all(job["cpus"][node] > 0 for node in counts)
    assert len(counts) == 3
    assert max(counts.values()) - min(counts.values()) <= 1


def test_a_node_with_processes_without_cpus_is_given_back(seen):
    job = seen["without_cpus"]
    assert job["removed"] in job["before"].values()
    assert job["removed"] not in job["after"].values()
    assert all(job["cpus"][node] > 0 for node in job["after"].values())
    assert job["correct"]


def test_a_spare_becomes_the_worker_that_joins_and_the_one_that_was_lost(seen):
    assert seen["spread"]["scaled"]["numbered-2"] == "spare-0"
    assert seen["spread"]["recovered"]["numbered-0"] == "spare-1"


def test_a_released_node_has_no_worker_any_more_and_the_results_are_those_of_the_rows(seen):
    spread = seen["spread"]
    assert spread["removed"] in spread["before"].values()
    assert spread["removed"] not in spread["after"].values()
    assert spread["parallelism"] or spread["replaced"]
    assert spread["rows"] > 1_000
    assert spread["correct"]


def test_workers_of_a_lost_node_go_on_elsewhere_and_the_results_are_those_of_the_rows(seen):
    spread = seen["spread"]
    assert spread["lost"] in spread["after"].values()
    assert spread["lost"] not in spread["survived"].values()
    assert set(spread["survived"]) == set(spread["after"])
    assert spread["correct"]


def test_a_job_that_ray_would_put_on_a_node_that_was_just_lost_begins_elsewhere(seen):
    job = seen["beside_a_lost_node"]
    assert job["thought_alive"], "or this shows nothing"
    assert job["lost"] not in job["places"].values()
    assert job["correct"]


def test_workers_are_on_nodes_with_the_resources_that_their_operator_names_whenever_they_start(seen):
    job = seen["with_resources"]
    for when, node in (("began", "first"), ("scaled", "first"), ("recovered", "first"), ("moved", "second")):
        assert {place for worker, place in job[when].items() if worker.startswith("numbered-")} == {job[node]}, when
    assert len([worker for worker in job["recovered"] if worker.startswith("numbered-")]) == 2
    assert job["assigned"] == {"CPU": 0.5, "device": 1.0}
    assert job["correct"]


def test_workers_of_other_operators_leave_such_nodes_to_it(seen):
    job = seen["with_resources"]
    assert job["began"]["generate-0"] != job["first"]


def test_scaling_beyond_the_resources_says_what_is_missing(seen):
    assert "no room for 1 of 1 worker: each needs 0.5 CPUs, 1 device; free: " in seen["with_resources"]["full"]
    assert "0 device on node" in seen["with_resources"]["full"]
