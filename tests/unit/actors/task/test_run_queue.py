"""The times that the system counts for a thread."""

from __future__ import annotations

import os
import threading
import time

import pytest

from evenflow.actors.task.run_queue import RunQueue, Spent, open_schedstat, read_schedstat


@pytest.fixture
def said(tmp_path):
    """Read a file with this text."""

    def read(text):
        (tmp_path / "schedstat").write_text(text)
        file = open_schedstat(tmp_path / "schedstat")
        try:
            return read_schedstat(file)
        finally:
            os.close(file)

    return read


def test_hardly_anything_has_been_spent_at_the_first_question():
    assert RunQueue().take().on_cpu < 0.1


def test_a_system_without_schedstat_reports_no_waiting(tmp_path, said):
    assert read_schedstat(open_schedstat(tmp_path / "none")) == Spent(0.0, 0.0)
    assert said("none\n") == Spent(0.0, 0.0)


def test_nanoseconds_become_seconds(said):
    assert said("1500000000 250000000 17\n") == Spent(1.5, 0.25)


def test_time_that_was_taken_does_not_count_again():
    queue = RunQueue()
    before = queue.so_far()
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass
    assert queue.take().on_cpu >= 0.02
    assert queue.take().on_cpu <= queue.so_far().on_cpu - before.on_cpu - 0.02


def test_each_thread_gets_its_own_times():
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
