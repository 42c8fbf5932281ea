"""Upgrades start their processes ahead, need rows for the new code, and work where there is a worker for each key group."""

from __future__ import annotations

import numpy as np
import pytest
from acting_job import ActingJob

import evenflow as ef
from evenflow.engine.plan.rescale import NewCode
from evenflow.engine.protocol.ids import code_of
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.parts.upgrading import MOST_AHEAD, PREPARE_PATIENCE
from evenflow.scheduler.policies.nodes.placement import ClusterView
from evenflow.scheduler.protocol.effects import Reserve
from evenflow.scheduler.protocol.reports import UpgradeState
from evenflow.scheduler.protocol.requests import ShowStatus
from evenflow.scheduler.protocol.upgrade_options import UpgradeOptions

WATCH = 10.0


class Job(ActingJob):
    """A job whose stages `items`, a source, and `count` have new code; `quiet`: those whose new code gets no rows; `measured`: the key
    groups whose load is known.
    """

    def __init__(self, parallelism=2, key_groups=4):
        flow = ef.Dataflow("clicks")
        flow.read(ef.generate()).named("items").key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
        self.started, self.reserved = None, []
        config = ef.JobConfig(parallelism=parallelism, key_groups=key_groups)
        super().__init__(flow.plan(config=config), config)
        self.quiet = {"old": set(), "new": set()}
        self.measured = [0, 1]

    def upgrade(self, *stages, **options):
        version, plan = self.core.upgrading.next_version, self.core.plan
        codes = {stage: NewCode(version, tuple(plan.stage_of(stage).chain)) for stage in stages}
        upgrade = self.core.upgrading.upgrade(codes, UpgradeOptions(**{"canary": 0.25, "watch": WATCH, **options}), "by hand")
        self.take()
        return upgrade

    def view(self):
        """Return a cluster whose spares start when the test lets them, None if it doesn't say."""
        return None if self.started is None else ClusterView(reserved=self.started)

    def carry_out(self, effect):
        if isinstance(effect, Reserve):
            self.reserved.append((effect.workers, effect.hurry))
        super().carry_out(effect)

    def second(self):
        self.settle()
        for worker in self.core.workers:
            task = next(task for task in self.core.plan.tasks if task.name == worker)
            version = "old" if code_of(worker) == 1 else "new"
            rows = 0 if task.stage in self.quiet[version] else 10
            groups, load = np.array(self.measured, np.int32), np.full(len(self.measured), 0.1)
            self.report(worker, WorkerWindow(worker, self.now, 1.0, rows_in=rows, rows_out=rows, groups=groups, load=load))
        self.tick(1.0)

    def until_over(self):
        while self.core.upgrading.busy:
            self.second()


@pytest.fixture
def job():
    return Job()


def test_new_code_with_rows_passes_its_watch(job):
    upgrade = job.upgrade("items", "count")
    job.until_over()
    assert upgrade.report().state is UpgradeState.DONE


def test_a_job_has_not_ended_before_the_workers_that_are_replaced(job, monkeypatch):
    record, answer, ends = job.core.record, job.answer, set()

    def ended(*workers):
        with monkeypatch.context() as patch:
            patch.setattr(type(record), "finished", frozenset(workers))
            return record.all_finished

    def look(worker, command):
        if record.rescaling and (leaving := set(record.rescaling.rescale.leaving).difference(record.workers)):
            ends.add((ended(*record.workers), ended(*record.workers, *leaving)))
        answer(worker, command)

    monkeypatch.setattr(job, "answer", look)
    job.upgrade("count")
    job.until_over()
    assert ends == {(False, True)}


@pytest.mark.parametrize(
    ("stage", "advice"),
    [
        ("count", "name `canary_keys` that have rows, or give it a larger `canary`, or say canary=0"),
        ("items", "scale the source to fewer workers than it has splits, so that the additional one has a split to read, or say canary=0"),
    ],
)
def test_new_code_without_rows_is_taken_back_after_twice_the_watch(job, stage, advice):
    job.quiet["new"].add(stage)
    upgrade = job.upgrade("items", "count")
    job.until_over()
    report = upgrade.report()
    assert report.state is UpgradeState.ROLLED_BACK
    assert report.problem.startswith(f"operator `{stage}`: its canary had none of ")
    assert f" rows in {2 * WATCH:.0f} s, so the new code showed nothing" in report.problem
    assert report.problem.endswith(advice)


def test_a_quiet_stream_is_no_pass(job):
    job.quiet = {"old": {"count"}, "new": {"count"}}
    upgrade = job.upgrade("count")
    job.until_over()
    assert upgrade.report().state is UpgradeState.ROLLED_BACK
    assert "operator `count`: no rows came in 20 s" in upgrade.report().problem


def test_the_watch_is_extended_until_there_are_rows_and_its_progress_says_so(job):
    job.quiet["new"].add("count")
    upgrade = job.upgrade("items", "count")
    while upgrade.watch_from is None or job.now - upgrade.watch_from <= WATCH:
        job.second()
    assert job.ask(ShowStatus()).upgrade.details == "11 s of 10 s, extended until there are rows for `count`"
    job.quiet["new"].clear()
    job.second()
    job.until_over()
    assert upgrade.report().state is UpgradeState.DONE


def test_rows_count_however_long_ago_they_came(job):
    upgrade = job.upgrade("count", watch=1_000.0)
    while upgrade.watch_from is None or job.now - upgrade.watch_from <= 5.0:
        job.second()
    job.quiet["new"].add("count")
    job.until_over()
    assert upgrade.report().state is UpgradeState.DONE


def test_an_upgrade_without_a_canary_watches_nothing(job):
    job.quiet = {"old": {"count"}, "new": {"count"}}
    upgrade = job.upgrade("count", canary=0.0)
    job.until_over()
    assert upgrade.report().state is UpgradeState.DONE


@pytest.mark.parametrize("canary", [0.0, 0.25, 0.6])
def test_a_stage_with_a_worker_for_each_key_group_is_upgraded(canary):
    job = Job(parallelism=4, key_groups=4)
    upgrade = job.upgrade("count", canary=canary)
    job.until_over()
    assert (upgrade.report().state, upgrade.report().problem) == (UpgradeState.DONE, None)
    assert job.core.plan.stage_of("count").codes == (2, 2, 2, 2)


def test_only_rows_for_another_stage_are_compared_with_those_that_came(job):
    upgrade = job.upgrade("items", "count")
    job.until_over()
    items, count = upgrade.report().compared
    assert (items.old.selectivity, items.new.selectivity) == (1.0, 1.0)
    assert (count.old.selectivity, count.new.selectivity) == (None, None)


def test_an_upgrade_begins_to_move_once_its_processes_have_started_and_gives_them_back(job):
    job.started = False
    upgrade = job.upgrade("items", "count", canary=0.5)
    for _ in range(3):
        job.second()
    joining = ("items-2v2", "count-2v2", "items-0v2", "items-1v2", "count-0v2", "count-1v2")
    assert job.reserved == [(joining, False)]
    assert not job.core.reconfiguration.busy
    assert job.ask(ShowStatus()).upgrade.state is UpgradeState.JOINING
    job.started = True
    job.until_over()
    assert upgrade.report().state is UpgradeState.DONE
    assert job.reserved[1:] == [((), True)]


@pytest.mark.parametrize(("room", "waits"), [(True, PREPARE_PATIENCE), (False, 0.0)])
def test_an_upgrade_goes_on_without_processes_that_do_not_start(job, room, waits):
    job.started = False
    upgrade = job.upgrade("count")
    job.second()
    if not room:
        job.core.not_reserved("no room", job.now)
    job.until_over()
    assert upgrade.report().state is UpgradeState.DONE
    assert waits <= upgrade.watch_from - upgrade.begun < waits + 10


def test_new_code_that_is_taken_back_gives_its_processes_back_at_once(job):
    job.started = True
    upgrade = job.upgrade("count")
    while upgrade.watch_from is None:
        job.second()
    job.core.upgrading.abort()
    job.take()
    job.settle()
    assert job.reserved[1:] == [((), True)]
    job.until_over()
    assert len(job.reserved) == 2


def test_workers_with_an_environment_of_their_own_start_no_process_ahead(job):
    job.started = False
    code = NewCode(job.core.upgrading.next_version, tuple(job.core.plan.stage_of("count").chain), {"pip": ["requests"]})
    job.core.upgrading.upgrade({"count": code}, UpgradeOptions(canary=0.25, watch=WATCH), "by hand")
    job.second()
    assert job.reserved == []


def test_large_jobs_start_only_so_many_processes_ahead():
    job = Job(parallelism=MOST_AHEAD, key_groups=64)
    job.started = False
    job.upgrade("count")
    job.second()
    assert len(job.reserved[0][0]) == MOST_AHEAD


def joined(job, upgrade):
    """Let time pass until the additional worker has joined."""
    while len(job.core.plan.stage_of("count").workers) == 2:
        job.second()
    assert not upgrade.keys_moved


def test_a_canary_is_chosen_once_the_load_of_its_operator_is_measured(job):
    job.measured = []
    upgrade = job.upgrade("count")
    joined(job, upgrade)
    job.second()
    assert upgrade.step is None
    job.measured = [0, 1]
    job.second()
    assert upgrade.measured_until is not None
    assert job.now < upgrade.measured_until
    job.until_over()
    assert upgrade.report().state is UpgradeState.DONE


def test_a_canary_without_measured_load_is_chosen_all_the_same(job):
    job.measured = []
    upgrade = job.upgrade("count")
    job.until_over()
    assert upgrade.report().state is UpgradeState.DONE
