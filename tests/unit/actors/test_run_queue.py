"""What the system counts of a thread."""

from __future__ import annotations

import threading
import time

from evenflow.actors.task.run_queue import RunQueue, Spent, read_schedstat


def test_nothing_has_been_spent_at_the_first_question():
    assert RunQueue().take() == Spent(0.0, 0.0)


def test_system_that_does_not_count_says_that_nobody_waited(tmp_path):
    assert read_schedstat(tmp_path / "schedstat") == Spent(0.0, 0.0)
    (tmp_path / "schedstat").write_text("none\n")
    assert read_schedstat(tmp_path / "schedstat") == Spent(0.0, 0.0)


def test_nanoseconds_become_seconds(tmp_path):
    (tmp_path / "schedstat").write_text("1500000000 250000000 17\n")
    assert read_schedstat(tmp_path / "schedstat") == Spent(1.5, 0.25)


def test_each_thread_is_told_its_own():
    spent = {}

    def idle():
        queue = RunQueue()
        queue.take()
        burn.wait(10)
        spent["idle"] = queue.take()

    burn = threading.Event()
    other = threading.Thread(target=idle)
    other.start()
    queue = RunQueue()
    queue.take()
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        pass
    burn.set()
    other.join()
    assert spent["idle"].on_cpu <= queue.take().on_cpu
