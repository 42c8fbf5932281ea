"""The job's figures from its workers' windows."""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.scheduler.load.metrics import HISTORY, JobMetrics
from evenflow.scheduler.load.window import WorkerWindow


def window(worker, start=0.0, **figures):
    return WorkerWindow(worker, start, length=2.0, **figures)


@pytest.fixture
def metrics():
    return JobMetrics({"read-0": "read", "count-0": "count", "count-1": "count"})


def test_totals_add_up_and_rates_are_of_the_newest_window(metrics):
    metrics.add(window("read-0", 0.0, rows_in=10, rows_out=8))
    metrics.add(window("read-0", 2.0, rows_in=4, rows_out=2))
    figures = metrics.workers()[0]
    assert (figures.rows_in, figures.rows_out) == (14, 10)
    assert (figures.rows_in_per_second, figures.rows_out_per_second) == (2.0, 1.0)


def test_times_become_shares_of_the_window(metrics):
    metrics.add(window("read-0", useful=1.0, wait_input=0.6, wait_credit=0.2))
    figures = metrics.workers()[0]
    assert (figures.useful_share, figures.input_wait_share, figures.backpressure) == (0.5, 0.3, 0.1)


def test_worker_that_has_reported_nothing_has_figures_of_nothing(metrics):
    figures = metrics.workers()
    assert [figure.worker for figure in figures] == ["read-0", "count-0", "count-1"]
    assert figures[2].rows_in == 0
    assert figures[2].latency_ms is None
    assert figures[2].watermark is None


def test_latency_is_over_the_last_marks_of_several_windows(metrics):
    metrics.add(window("count-0", latencies=(1.0, 3.0)))
    metrics.add(window("count-0", latencies=(2.0,)))
    assert metrics.workers()[1].latency_ms == (2.0, pytest.approx(2.98))


def test_load_of_an_operator_is_useful_time_by_worker_and_by_group(metrics):
    metrics.add(window("count-0", useful=1.0, groups=np.array([3, 5], np.int32), load=np.array([0.6, 0.4])))
    metrics.add(window("count-1", useful=0.5, groups=np.array([5], np.int32), load=np.array([0.5])))
    load = metrics.load("count")
    assert load.workers == {"count-0": 0.5, "count-1": 0.25}
    assert load.groups == {3: 0.3, 5: pytest.approx(0.45)}
    assert load.imbalance == pytest.approx(0.5 / 0.375)


def test_hot_keys_of_all_workers_are_put_together_hottest_first(metrics):
    metrics.add(window("count-0", hot_keys=(("a", 5), ("b", 4))))
    metrics.add(window("count-1", hot_keys=(("b", 3),)))
    assert metrics.load("count").hot_keys == (("b", 7), ("a", 5))


def test_idle_operator_is_even(metrics):
    assert metrics.load("count").imbalance == 1.0


def test_history_keeps_the_newest_windows(metrics):
    for start in range(HISTORY + 5):
        metrics.add(window("read-0", float(start)))
    history = metrics.history("read-0")
    assert len(history) == HISTORY
    assert (history[0].start, history[-1].start) == (5.0, HISTORY + 4.0)


def test_workers_are_in_the_plans_order_when_all_have_been_replaced(metrics):
    for worker in ("count-1v2", "read-0v2", "count-0v2"):
        metrics.join(worker, worker.partition("-")[0])
    expected = ["read-0", "read-0v2", "count-0", "count-0v2", "count-1", "count-1v2"]
    assert [figures.worker for figures in metrics.workers()] == expected
    assert list(metrics.load("count").workers) == expected[2:]
    for worker in ("read-0", "count-0", "count-1"):
        metrics.leave(worker)
    assert [figures.worker for figures in metrics.workers()] == ["read-0v2", "count-0v2", "count-1v2"]


def test_windows_from_before_a_worker_left_do_not_count_for_the_load_of_its_keys(metrics):
    for second in range(0, 8, 2):
        metrics.add(window("count-0", float(second)))
        if second < 4:
            metrics.add(window("count-1", float(second)))
        metrics.add(window("read-0", float(second)))
    assert [one.start for one in metrics.complete("count-0", 3)] == [2.0, 4.0, 6.0]
    metrics.leave("count-1")
    assert [one.start for one in metrics.complete("count-0", 3)] == [4.0, 6.0]
    assert [one.start for one in metrics.complete("read-0", 3)] == [2.0, 4.0, 6.0]
