"""The announcements of a migration: which worker learns which moves, and who has yet to answer."""

from __future__ import annotations

import pytest

from evenflow.engine.protocol.handover_step import HandoverStep
from evenflow.engine.protocol.routing import Move, RoutingTable
from evenflow.scheduler.protocol.messages import Announce, Announced
from evenflow.scheduler.record.migrations import Migrations

FEEDERS = frozenset({"read-0", "read-1"})
MEMBERS = {"count-0": 5, "count-1": 6, "count-2": 7}
FIRST, SECOND = HandoverStep(1, (Move(0, 1, (0,)),)), HandoverStep(2, (Move(0, 1, (2,)),))


@pytest.fixture
def migrations():
    found = Migrations({"count": RoutingTable([0, 1, 0, 2])})
    found.add("count", "batched", "by the test", [FIRST, SECOND], FEEDERS, MEMBERS, None)
    return found


def advanced(migrations, finished=frozenset()):
    return migrations.advance(finished=finished, running=True, free=True, now=1.0)


def test_owners_of_moving_keys_learn_each_others_numbers_and_others_learn_nothing(migrations):
    steps = FIRST, SECOND
    assert dict(advanced(migrations)) == {
        "read-0": Announce(0, "count", steps),
        "read-1": Announce(0, "count", steps),
        "count-0": Announce(0, "count", steps, {"count-1": 6}),
        "count-1": Announce(0, "count", steps, {"count-0": 5}),
    }


def test_upstream_workers_get_one_instance_which_is_pickled_once(migrations):
    told = dict(advanced(migrations))
    assert told["read-0"] is told["read-1"]


def test_step_waits_for_the_workers_that_take_part_unless_they_have_finished(migrations):
    told = [worker for worker, _ in advanced(migrations, frozenset({"read-1"}))]
    assert told == ["count-0", "count-1", "read-0"]
    for worker in told[1:]:
        migrations.note(worker, Announced(0))
    assert advanced(migrations, frozenset({"read-1"})) is None
    migrations.note(told[0], Announced(0))
    assert [worker for worker, _ in advanced(migrations, frozenset({"read-1"}))] == ["read-0"]
