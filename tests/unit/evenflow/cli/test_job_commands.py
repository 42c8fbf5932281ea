from __future__ import annotations

import numpy as np

from evenflow.engine.errors import JobError
from evenflow.scheduler.load.metrics import JobMetrics
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.nodes.placement import WorkerPlace
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.terminal.console import as_text
from evenflow.terminal.metrics import metrics_tables
from evenflow.terminal.status import status_table

text_of = as_text


def test_status_shows_state_workers_and_error():
    error = JobError("disk full")
    error.add_note("a file is gone too")
    status = JobStatus("delays", JobState.FAILED, error, ("count-0", "count-1"), 3, 12.34)
    text = text_of(status_table(status))
    assert all(part in text for part in ("delays", "failed", "12.3 s", "count-0", "count-1", "disk full", "a file is gone too"))


def test_status_shows_where_each_worker_is_and_by_what_name_if_by_another():
    places = {"count-0": WorkerPlace("delays/count-0", "0123456789abcdef"), "count-1": WorkerPlace("delays/spare-0", "fedcba9876543210")}
    status = JobStatus("delays", JobState.RUNNING, None, ("count-0", "count-1"), 3, 12.34, places=places, spares=2)
    text = text_of(status_table(status))
    assert "count-0 on 01234567\n" in text
    assert "count-1 on fedcba98 (spare-0)\n" in text
    assert "warm spares" in text


def test_metrics_show_rates_shares_and_event_time():
    metrics = JobMetrics({"count-0": "count"})
    window = WorkerWindow(
        "count-0",
        0.0,
        2.0,
        rows_in=3000,
        useful=1.0,
        wait_credit=0.5,
        watermark=1_500_000,
        latencies=(1.0, 1.0),
        groups=np.zeros(0, np.int32),
    )
    metrics.add(window)
    text = text_of(metrics_tables(metrics.workers()))
    assert all(part in text for part in ("1.5k", "50%", "25%", "1970-01-01 00:00:01", "1.0/1.0"))
