"""Stela's star on two nodes gets a third one; `several_nodes.py` runs it."""

from __future__ import annotations

import pytest

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(420),
]  # a process of Ray's takes from one second to ten to start, by how busy the machine is


@pytest.fixture
def seen(seen_on_several_nodes):
    return seen_on_several_nodes["star"]


def test_the_operator_that_holds_the_others_back_gets_the_new_nodes_workers(seen):
    assert seen["added"] == [seen["node"]]
    before, after = seen["parallelism"]["middle"]
    assert before == 4 < after
    assert [seen["places"][f"middle-{index}"] for index in range(before, after)] == [seen["node"]] * (after - before)


def test_all_rows_are_those_of_the_sequential_computation(seen):
    found = seen["differences"]
    assert found.keys() == {"up", "down"}
    assert all(rows > 100 and (missing, wrong) == (0, 0) for rows, missing, wrong in found.values())
