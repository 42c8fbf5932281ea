"""The view of a job: everything new since a time, and the present state, in one answer."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from acting_job import ActingJob

import evenflow as ef
from evenflow.balancer.verdict import Verdict
from evenflow.engine.dropped_records import MOST, DroppedRecord
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.requests import MoveKeys, ShowView, TakeCheckpoint


def plan_of(config):
    flow = ef.Dataflow("clicks")
    rows = flow.read(ef.from_items([1])).map(lambda row: row).named("double")
    rows.key_by("item").aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
    return flow.plan(config=config)


class Job(ActingJob):
    """Two workers, four key groups, balanced automatically."""

    def __init__(self):
        config = ef.JobConfig(parallelism=2, key_groups=4, balance=ef.BalanceConfig("hotspot"))
        super().__init__(plan_of(config), config)

    def measure(self, start, *loads):
        for worker, load in enumerate(loads):
            window = WorkerWindow(f"count-{worker}", start, 1.0, groups=np.array([2 * worker], np.int32), load=np.array([load]))
            self.report(f"count-{worker}", window)


@pytest.fixture
def job():
    return Job()


def test_a_view_names_stages_workers_and_owners(job):
    view = job.ask(ShowView())
    source, count = view.stages
    assert (source.operators, source.outputs, source.is_source) == (("from_items", "double", "count.combine"), ("count",), True)
    assert source.table is None
    assert (count.operators, count.workers) == (("count", "out"), ("count-0", "count-1"))
    assert count.table.groups.tolist() == [0, 0, 1, 1]
    assert view.status.name == "clicks"


def test_windows_are_those_that_ended_since(job):
    for start in (100.0, 101.0, 102.0):
        job.measure(start, 0.5, 0.5)
    assert len(job.ask(ShowView()).windows) == 6
    assert [(w.worker, w.start) for w in job.ask(ShowView(102.0)).windows] == [("count-0", 102.0), ("count-1", 102.0)]


def test_finished_migrations_are_in_one_view_and_running_ones_in_every_view(job):
    job.ask(MoveKeys("count", (0,), (), 1, "sudden"))
    assert [m.number for m in job.ask(ShowView(job.now + 100)).migrations] == [0]
    job.settle()
    assert [m.number for m in job.ask(ShowView()).migrations] == [0]
    assert job.ask(ShowView(job.now + 100)).migrations == ()
    assert job.ask(ShowView()).stages[1].table.groups.tolist() == [1, 0, 1, 1]


def test_checkpoints_are_in_it(job):
    job.ask(TakeCheckpoint())
    job.tick(1.0)
    job.settle()
    assert [report.number for report in job.ask(ShowView()).checkpoints] == [1]
    assert job.ask(ShowView(job.now + 100)).checkpoints == ()


def test_automatic_balancing_says_what_it_saw(job):
    assert (job.ask(ShowView()).stages[1].balancer, job.ask(ShowView()).stages[1].observation) == ("hotspot", None)
    for start in (100.0, 101.0):
        job.measure(start, 0.4, 0.4)
        job.tick(1.0)
    look = job.ask(ShowView()).stages[1].observation
    assert (look.imbalance, look.floor, look.verdict) == (1.0, 1.0, Verdict.EVEN)
    for start in (102.0, 103.0):
        job.measure(start, 0.01, 0.01)
        job.tick(1.0)
    assert job.ask(ShowView()).stages[1].observation.verdict is Verdict.IDLE


def test_the_newest_dropped_records_are_in_a_view_and_not_in_its_windows(job):
    for start in range(100, 100 + 2 * MOST):
        left = (DroppedRecord("count", "refused", f"record {start}"), DroppedRecord("double", "late", "a row"))
        job.report("count-0", WorkerWindow("count-0", float(start), 1.0, dropped_records=left))
    view = job.ask(ShowView())
    assert not any(window.dropped_records for window in view.windows)
    refused = [record for record in view.dropped_records if record.what.kind == "refused"]
    assert [(r.time, r.what.record) for r in refused] == [(at + 1.0, f"record {at}") for at in range(100 + MOST, 100 + 2 * MOST)]
    assert len(view.dropped_records) == 2 * MOST


def test_a_view_is_sent_without_separate_arrays(job):
    job.measure(100.0, 0.5, 0.25)
    beside = []
    view = job.ask(ShowView())
    again = pickle.loads(pickle.dumps(view, protocol=5, buffer_callback=beside.append))
    assert beside == []
    assert again.windows[0].load.tolist() == [0.5]
    assert again.stages[1].table == view.stages[1].table
    assert again.status == view.status
