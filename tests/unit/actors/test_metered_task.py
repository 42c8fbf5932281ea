"""What a task in real time does in the background has a share of its time, and waits for it."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.actors.task.metered_task import FEW, GIVE_SHARE, IDLE, SAVE_SHARE, MeteredTask
from evenflow.actors.task.task_interpreter import TaskInterpreter


class NoChannels:
    def send(self, channel, element):
        pass

    def consumed(self, channel, batch):
        pass


class Work:
    """In place of the task's work: takes `seconds` each time, and is there for as long as `left` says."""

    def __init__(self, task, patch, method, what):
        self.now, self.seconds, self.left, self.done = 100.0, 0.1, 1000, 0
        patch.setattr(task, "_now", lambda: self.now)
        patch.setattr(TaskInterpreter, method, lambda _: self.work())
        patch.setattr(type(task.task), what, property(lambda _: self.left > 0))

    def work(self):
        if not self.left:
            return False
        self.now += self.seconds
        self.left -= 1
        self.done += 1
        return True


def metered(config=None):
    flow = ef.Dataflow("f")
    flow.read(ef.from_items(range(100))).named("items").write(ef.to_list([]))
    spec = next(task for task in flow.plan().tasks if task.name == "items-0")
    reports = []
    config = config if config is not None else ef.JobConfig(metrics=ef.MetricsConfig(latency_interval="500ms"))
    task = MeteredTask(spec, NoChannels(), reports.append, config.of_run("f"))
    task.open()
    return task, reports


def test_giving_state_leaves_its_share_of_the_time_to_records(monkeypatch):
    task, _ = metered()
    work = Work(task, monkeypatch, "give", "giving")
    begun = work.now
    while work.now < begun + 100:
        if not task.give():
            work.now += min(0.05, task.sleep_for() or 0.05)
    assert 0.9 * GIVE_SHARE < work.done * work.seconds / (work.now - begun) <= GIVE_SHARE * 1.01


def test_saving_has_a_smaller_share_at_first_and_then_as_much(monkeypatch, tmp_path):
    task, _ = metered(ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path))))
    work = Work(task, monkeypatch, "save", "saving")
    shares = []
    for _ in range(3):
        begun, before = work.now, work.done
        while work.now < begun + 3.0:
            if not task.save():
                work.now += min(0.01, task.sleep_for())
        shares.append((work.done - before) * work.seconds / (work.now - begun))
    assert shares[0] < SAVE_SHARE * 1.3 < shares[1]
    assert shares[2] < GIVE_SHARE * 1.2
    task.close()


def test_latency_mark_leaves_with_rows_once_an_interval(monkeypatch):
    task, _ = metered()
    work = Work(task, monkeypatch, "give", "giving")
    for _ in range(8):
        task.poll(1)
        work.now += 0.2
    assert len(task.meter.latencies) == 3, "at 0, 0.6 and 1.2 s"


def test_task_that_is_over_sleeps(monkeypatch):
    task, reports = metered()
    task.fail(ValueError("broken"))
    assert (task.sleep_for(), len(reports)) == (IDLE, 1)
    task.measure(0, 0, 0)
    assert reports[1].worker == "items-0"


def test_rows_that_come_a_few_at_a_time_are_left_to_gather(monkeypatch):
    task, _ = metered()
    work = Work(task, monkeypatch, "give", "giving")
    work.left = 0
    linger, given = task.spec.settings.linger, [1, 0, FEW - 1, 0, FEW, 0, 0]
    monkeypatch.setattr(TaskInterpreter, "poll", lambda _, rows, mark: given.pop(0))
    monkeypatch.setattr(task.source.reader, "ready_in", lambda: linger / 5)
    for few in (1, FEW - 1):
        assert [task.poll(100) for _ in range(3)] == [few, 0, 0], "the third does not ask the source"
        assert task.sleep_for() == pytest.approx(linger)
        work.now += 1.01 * linger
    assert [task.poll(100) for _ in range(2)] == [FEW, 0]
    assert task.sleep_for() == linger / 5, "many, or none, don't gather"
    assert (task.poll(100), given, task.sleep_for()) == (0, [], linger / 5)
