"""Warm spares: the wanted number is kept, and a spare that is taken has started."""

from __future__ import annotations

import pytest

from evenflow.actors.processes.spares import REPLACE_AFTER, ROOM_INTERVAL, UNASKED_AFTER, Spares


class Process:
    """A process that starts and is lost on demand."""

    def __init__(self, label):
        self.label, self.node = label, "a"
        self.lost = self.ended = self.started = False

    def look(self):
        return self.started

    def end(self):
        self.ended = True


class Pool:
    """A pool with two spares; `made` are all processes so far."""

    def __init__(self, count=2, after=0.0):
        self.made, self.room = [], True
        self.spares = Spares(count, self.start, after)

    def start(self, label):
        if not self.room:
            return None
        self.made.append(Process(label))
        return self.made[-1]

    def tick(self, allowed=lambda node: True):
        self.spares.tick(allowed)

    @property
    def labels(self):
        return [process.label for process in self.spares.processes]


@pytest.fixture
def pool():
    pool = Pool()
    pool.tick()
    return pool


def anywhere(node):
    return True


def test_only_a_started_spare_is_taken_and_another_one_replaces_it_later(pool):
    assert pool.spares.take(anywhere) is None
    pool.made[1].started = True
    assert pool.spares.take(anywhere) is pool.made[1]
    assert pool.spares.take(anywhere) is None
    pool.tick()
    assert pool.labels == ["spare-0"]
    pool.spares._again -= REPLACE_AFTER
    pool.tick()
    assert pool.labels == ["spare-0", "spare-2"]
    assert not pool.made[1].ended, "it has work now"


def test_a_lost_spare_is_not_taken_and_is_replaced(pool):
    pool.made[0].started = pool.made[0].lost = True
    assert pool.spares.take(anywhere) is None
    pool.tick()
    assert pool.labels == ["spare-1", "spare-2"]


def test_no_spare_is_taken_or_kept_on_a_node_that_is_not_allowed(pool):
    pool.made[0].started = pool.made[1].started = True
    pool.made[1].node = "b"
    assert pool.spares.take(lambda node: node == "b") is pool.made[1]
    pool.tick(lambda node: node == "b")
    assert pool.made[0].ended
    assert "spare-0" not in pool.labels


def test_a_spare_without_room_is_tried_again_later():
    pool = Pool()
    pool.room = False
    pool.tick()
    pool.room = True
    pool.tick()
    assert pool.labels == []
    pool.spares._again -= ROOM_INTERVAL
    pool.tick()
    assert len(pool.labels) == 2


def test_more_spares_are_kept_for_a_while_and_then_ended(pool):
    pool.spares.want(1)
    pool.tick()
    assert len(pool.labels) == 3
    for process in pool.made:
        process.started = True
    assert pool.spares.complete
    pool.spares.want(0)
    pool.tick()
    assert len(pool.labels) == 2
    assert [process.ended for process in pool.made] == [False, False, True]


def test_spares_that_no_one_asked_for_start_late_and_nothing_waits_for_them():
    pool = Pool(1, UNASKED_AFTER)
    pool.tick()
    assert pool.labels == []
    assert pool.spares.complete
    pool.spares.want(1)
    pool.tick()
    assert pool.labels == ["spare-0"], "a scaling has its own at once"
    assert not pool.spares.complete
    pool.spares.want(0)
    pool.tick()
    pool.spares._begun -= UNASKED_AFTER
    pool.tick()
    assert pool.labels == ["spare-1"]
    pool.made[1].started = True
    assert pool.spares.take(anywhere) is pool.made[1]
    pool.tick()
    assert pool.labels == [], "the start of another takes the processors from the rows that are read again"
    pool.spares._again -= REPLACE_AFTER
    pool.tick()
    assert pool.labels == ["spare-2"]


def test_all_spares_end_with_the_job(pool):
    pool.spares.close()
    pool.tick()
    assert all(process.ended for process in pool.made)
    assert pool.labels == []


def test_extra_spares_start_one_after_the_other_unless_they_are_urgent(pool):
    pool.spares.want(2, together=False)
    pool.tick()
    assert len(pool.labels) == 2, "the usual ones have not started"
    for count in (3, 4, 4):
        for process in pool.made:
            process.started = True
        pool.tick()
        pool.tick()
        assert len(pool.labels) == count
    assert pool.spares.complete


def test_an_extra_spare_that_is_taken_is_not_replaced(pool):
    pool.spares.want(1)
    pool.tick()
    for process in pool.made:
        process.started = True
    pool.spares.take(anywhere)
    pool.spares._again -= REPLACE_AFTER
    pool.tick()
    assert pool.labels == ["spare-1", "spare-2"]
    assert pool.spares.complete
    pool.spares.take(anywhere)
    assert not pool.spares.complete
