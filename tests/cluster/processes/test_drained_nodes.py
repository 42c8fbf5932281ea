"""Nodes that Ray drains while a detached job's coordinator is on them, and the room that a lost coordinator had asked for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from watching import printed_by

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, folder: object) -> dict[str, Any]:
    """Return what `draining_nodes.py` saw on a cluster of its own."""
    found: dict[str, Any] = printed_by("draining_nodes.py", tmp_path_factory.mktemp("draining"))
    return found


def test_a_node_that_can_not_be_left_in_time_is_named_and_a_checkpoint_is_taken_for_it(seen):
    home = seen["leaves"]["home"][:8]
    assert seen["leaves"]["waits"][0].startswith(f"the job is leaving node {home}, which Ray drains. It goes in ")
    assert seen["leaves"]["saved"][0].startswith(f"node {home}, which Ray drains, goes in ")


def test_a_detached_jobs_coordinator_leaves_a_node_that_drains_and_the_rows_are_exact(seen):
    assert seen["leaves"]["after"] != seen["leaves"]["home"]
    rows = seen["leaves"]["rows"]
    assert sorted(row["seq"] for row in rows) == list(range(len(rows)))
    counts = Counter(row["key"] for row in rows)
    assert sorted((row["key"], row["n"]) for row in rows) == sorted((key, n + 1) for key, count in counts.items() for n in range(count))


def test_room_that_a_lost_coordinator_asked_for_is_withdrawn_by_the_next_one(seen):
    assert seen["room"]["before"] == ["asks/room"]
    assert seen["room"]["after"] == []
