"""State moves in the background within its share of a task's time, and a source that returns few rows rests."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.actors.task.pacing import (
    CROWDED,
    FEW,
    GIVE_SHARE,
    IDLE,
    INSTALL_BEHIND,
    INSTALL_SHARE,
    LESS,
    LOOK,
    MORE,
    SAVE_ALONE,
    SAVE_LONG,
    SAVE_SHARE,
    SAVE_SOON,
    Pacing,
)
from evenflow.actors.task.real_task import real_task

WORK = 0.1
"""Seconds that a chunk of state takes here."""


class NoChannels:
    def send(self, channel, element):
        pass

    def consumed(self, channel, batch):
        pass


def real(config=None):
    flow = ef.Dataflow("f")
    flow.read(ef.from_items(range(100))).named("items").write(ef.to_list([]))
    spec = next(task for task in flow.plan().tasks if task.name == "items-0")
    reports = []
    task = real_task(spec, NoChannels(), reports.append, (config or ef.JobConfig()).of_run("f"))
    task.open()
    return task, reports


def test_giving_state_away_leaves_its_share_of_the_time_to_records():
    pacing, now, given = Pacing(0.005), 100.0, 0.0
    while now < 200.0:
        if pacing.may_give(now):
            pacing.gave(now, now + WORK)
            now, given = now + WORK, given + WORK
        else:
            now += min(0.05, pacing.sleep_for(now, 1.0, giving=True, installing=False, saving=False) or 0.05)
    assert 0.9 * GIVE_SHARE < given / (now - 100.0) <= GIVE_SHARE * 1.01


def test_taking_state_step_by_step_leaves_its_share_of_the_time_to_records():
    pacing, now, taken = Pacing(0.005), 100.0, 0.0
    for chunks in (1, 3, 2) * 20:
        for _ in range(chunks):
            pacing.took(now, now + WORK)
            now, taken = now + 2 * WORK, taken + WORK
        now = pacing.rested_at()
    assert taken / (now - 100.0) == pytest.approx(GIVE_SHARE)


def test_step_whose_state_came_slowly_needs_no_rest():
    pacing = Pacing(0.005)
    pacing.took(100.0, 100.0 + WORK)
    pacing.took(200.0, 200.0 + WORK)
    assert pacing.rested_at() < 200.0


@pytest.mark.parametrize(("behind", "share"), [(False, INSTALL_SHARE), (True, INSTALL_BEHIND)])
def test_installing_restored_state_leaves_its_share_of_the_time_to_records(behind, share):
    pacing, now, spent = Pacing(0.005), 100.0, 0.0
    while now < 200.0:
        if pacing.may_install(now, behind=behind):
            pacing.installed(now, now + WORK)
            now, spent = now + WORK, spent + WORK
        else:
            now += min(0.05, pacing.sleep_for(now, 1.0, giving=False, installing=True, saving=False) or 0.05)
    assert 0.9 * share < spent / (now - 100.0) <= share * 1.01


@pytest.mark.parametrize(("behind", "later"), [(True, SAVE_LONG), (False, SAVE_ALONE)])
def test_saving_state_has_a_small_share_at_first_and_then_a_larger_one(behind, later):
    pacing, now, shares = Pacing(0.005), 100.0, []
    for _ in range(3):
        begun, saved = now, 0.0
        while now < begun + SAVE_SOON:
            if pacing.may_save(now):
                pacing.saved(now, now + WORK, behind=behind)
                now, saved = now + WORK, saved + WORK
            else:
                now += min(0.01, pacing.sleep_for(now, 1.0, giving=False, installing=False, saving=True))
        shares.append(saved / (now - begun))
    assert shares[0] < SAVE_SHARE * 1.3
    assert all(0.75 * later < share < 1.2 * later for share in shares[1:])


def test_a_checkpoint_behind_a_pause_begins_with_the_smaller_share_again():
    pacing = Pacing(0.005)
    pacing.saved(0.0, 1.0, behind=True)
    pacing.nothing_to_save()
    pacing.saved(100.0, 101.0, behind=False)
    assert not pacing.may_save(101.0 + 0.99 * (1 / SAVE_SHARE - 1))
    assert pacing.may_save(101.0 + 1.01 * (1 / SAVE_SHARE - 1))


def test_latency_mark_is_due_once_an_interval_and_stays_due_until_rows_follow_it():
    pacing = Pacing(0.005, latency_interval=0.5)
    assert pacing.mark_due(0.0)
    pacing.polled(0, 0.0, marked=True)
    assert pacing.mark_due(0.1)
    pacing.polled(10, 0.1, marked=True)
    assert (pacing.mark_due(0.5), pacing.mark_due(0.7)) == (False, True)
    assert not Pacing(0.005).mark_due(100.0)


@pytest.mark.parametrize("few", [1, FEW - 1])
def test_a_source_that_returned_few_rows_rests_for_the_linger(few):
    pacing = Pacing(linger=0.5)
    pacing.polled(few, 0.0, marked=False)
    assert pacing.may_poll(0.1)
    pacing.polled(0, 0.1, marked=False)
    assert not pacing.may_poll(0.2)
    assert pacing.sleep_for(0.1, 0.01, giving=False, installing=False, saving=False) == pytest.approx(0.5)
    assert pacing.may_poll(0.61)


@pytest.mark.parametrize("rows", [0, FEW])
def test_a_source_that_returned_many_rows_or_none_does_not_rest(rows):
    pacing = Pacing(linger=0.5)
    pacing.polled(rows, 0.0, marked=False)
    pacing.polled(0, 0.1, marked=False)
    assert pacing.may_poll(0.1)
    assert pacing.sleep_for(0.1, 0.01, giving=False, installing=False, saving=False) == 0.01


def rest_after(pacing, shares, begun=0.0):
    """Return the seconds for which many rows gather after looks at these shares of the time without a processor, `LOOK` apart."""
    now, starved = begun, 0.0
    for share in shares:
        assert pacing.look_due(now)
        pacing.looked(starved, now)
        assert not pacing.look_due(now)
        now += LOOK
        starved += share * LOOK
    pacing.looked(starved, now)
    pacing.polled(FEW, now, marked=False)
    pacing.polled(0, now, marked=False)
    return pacing.sleep_for(now, 0.0, giving=False, installing=False, saving=False)


def test_rows_gather_for_up_to_the_linger_while_processors_are_short():
    assert rest_after(Pacing(0.008), [0.5]) == pytest.approx(0.008 * MORE)
    assert rest_after(Pacing(0.008), [0.5] * 20) == pytest.approx(0.008)
    assert rest_after(Pacing(0.0), [0.5] * 20) == 0.0


def test_rows_are_read_at_once_again_when_processors_are_free():
    assert rest_after(Pacing(0.008), [CROWDED / 2] * 20) == 0.0
    assert rest_after(Pacing(0.008), [0.5, 0.0, 0.0]) == pytest.approx(0.008 * (MORE - 2 * LESS))
    assert rest_after(Pacing(0.008), [0.5] * 20 + [0.0] * 16) == pytest.approx(0.0)


def test_a_shorter_linger_shortens_the_rest_that_scarce_processors_cause():
    pacing = Pacing(0.008)
    rest_after(pacing, [0.5] * 20)
    pacing.set_linger(0.002, 10.0)
    pacing.polled(FEW, 10.0, marked=False)
    pacing.polled(0, 10.0, marked=False)
    assert (pacing.may_poll(10.0019), pacing.may_poll(10.0021)) == (False, True)


def test_a_source_looks_at_how_long_it_waits_for_processors():
    task, _ = real()
    task.meter.starved = lambda: 7.0
    task._pacing.looked = lambda starved, now: looked.append(starved)
    looked = []
    task.poll(10)
    assert looked == [7.0]
    task.close()


def test_a_resting_source_is_not_asked_for_rows():
    task, _ = real()
    task.source.reader.poll = lambda rows: pytest.fail("the source was polled")
    task._pacing.polled(1, task._now(), marked=False)
    task._pacing.polled(0, task._now() + 60.0, marked=False)
    assert task.poll(100) == 0


def test_task_that_is_over_sleeps_and_still_measures():
    task, reports = real()
    task.fail(ValueError("broken"))
    assert (task.sleep_for(), len(reports)) == (IDLE, 1)
    task.measure(0, 0, 0)
    assert reports[1].worker == "items-0"
    task.close()


def test_shorter_linger_ends_the_rest_of_a_source_early_and_a_longer_one_holds_for_the_next():
    pacing = Pacing(linger=60.0)
    pacing.polled(1, 100.0, marked=False)
    pacing.polled(0, 100.0, marked=False)
    pacing.set_linger(0.5, 101.0)
    assert not pacing.may_poll(101.4)
    assert pacing.may_poll(101.5)
    pacing.polled(1, 102.0, marked=False)
    pacing.polled(0, 102.0, marked=False)
    pacing.set_linger(60.0, 102.1)
    assert pacing.may_poll(102.5)
