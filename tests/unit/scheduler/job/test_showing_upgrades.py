"""A job's status and views show the upgrade under way, and its views the newest one that is over."""

from __future__ import annotations

from itertools import groupby

import pytest
from acting_job import ActingJob

import evenflow as ef
from evenflow.engine.plan.rescale import NewCode
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.reports import UpgradeState
from evenflow.scheduler.protocol.requests import ShowFigures, ShowLoad, ShowStatus, ShowView
from evenflow.scheduler.protocol.upgrade_options import UpgradeOptions


class Job(ActingJob):
    """A job of two workers and four key groups."""

    def __init__(self):
        flow = ef.Dataflow("clicks")
        flow.read(ef.from_items([1])).key_by("item").aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
        config = ef.JobConfig(parallelism=2, key_groups=4)
        super().__init__(flow.plan(config=config), config)

    def upgrade(self):
        upgrading, stage = self.core.upgrading, self.core.plan.stage_of("count")
        codes = {"count": NewCode(upgrading.next_version, tuple(stage.chain))}
        upgrading.upgrade(codes, UpgradeOptions(canary=0.25, watch=3.0), "by hand")
        self.take()

    def lines(self):
        """Take the upgrade to its end; return what the status said of it meanwhile, a line for each second in which it changed."""
        said = []
        while (progress := self.ask(ShowStatus()).upgrade) is not None:
            said.append(str(progress))
            self.settle()
            for worker in self.core.workers:
                self.report(worker, WorkerWindow(worker, self.now, 1.0, rows_in=1))
            self.tick(1.0)
        return [line for line, _ in groupby(said)]


@pytest.fixture
def job():
    return Job()


def test_the_status_names_version_operators_state_and_progress_of_the_upgrade_under_way(job):
    assert job.ask(ShowStatus()).upgrade is None
    job.upgrade()
    lines = job.lines()
    assert {line.partition(": ")[0] for line in lines} == {"upgrade 0 to version 2 of `count`"}
    states = [line.partition(": ")[2] for line in lines]
    watched = [line for line in states if line.startswith("watching")]
    assert watched == [f"watching the new code, {second} s of 3 s" for second in range(4)]
    assert any(line.startswith("starting workers with the new code") for line in states)
    left = [line for line in states if line.startswith("moving all keys")]
    assert left[-1] == "moving all keys to the new code, 1 step left"
    assert left == sorted(left, reverse=True)
    assert job.ask(ShowStatus()).upgrade is None
    assert "upgrade" not in str(job.ask(ShowStatus()))


def test_an_upgrade_that_is_taken_back_says_why_while_it_is(job):
    job.upgrade()
    while job.ask(ShowStatus()).upgrade.state is not UpgradeState.WATCHING:
        job.settle()
        job.tick(1.0)
    job.core.upgrading.abort()
    status = job.ask(ShowStatus())
    assert str(status.upgrade) == "upgrade 0 to version 2 of `count`: taking the new code back, 1 step left; it was aborted by hand"
    assert str(status.upgrade) in str(status).splitlines()
    job.lines()
    (report,) = job.ask(ShowView(job.now + 100)).upgrades
    assert (report.state, report.problem) == (UpgradeState.ROLLED_BACK, "it was aborted by hand")


def test_a_view_has_the_upgrade_under_way_and_the_newest_that_is_over_however_long_ago(job):
    assert job.ask(ShowView()).upgrades == ()
    for _ in range(2):
        job.upgrade()
        job.lines()
    job.tick(1_000.0)
    assert [(report.number, report.over) for report in job.ask(ShowView(job.now)).upgrades] == [(1, True)]
    job.upgrade()
    assert [(report.number, report.over) for report in job.ask(ShowView(job.now)).upgrades] == [(1, True), (2, False)]
    assert [report.number for report in job.ask(ShowView()).upgrades] == [0, 1, 2]


def test_replaced_workers_and_those_that_still_start_are_in_no_view_figures_or_load(job):
    job.upgrade()
    while job.core.upgrading.busy:
        job.tick(1.0)
        planned = job.core.plan.stage_of("count").workers
        assert job.ask(ShowView()).stages[-1].workers == planned
        assert [figures.worker for figures in job.ask(ShowFigures()) if figures.operator == "count"] == list(planned)
        assert list(job.ask(ShowLoad("count", 5)).workers) == list(planned)
        job.settle()
        for worker in planned:
            job.report(worker, WorkerWindow(worker, job.now, 1.0, rows_in=1))
    assert job.core.plan.stage_of("count").workers == ("count-0v2", "count-1v2")
