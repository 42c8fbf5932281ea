"""A job is scaled by a policy: when it observes, in which order decisions are carried out, and how they are reported."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from acting_job import ROUNDS, ActingJob

import evenflow as ef
from evenflow.engine.errors import RequestError
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.controller import ADVISED, Controller, DecisionRecord
from evenflow.scheduler.protocol.effects import Warn
from evenflow.scheduler.protocol.reports import MigrationReport, ScalingReport
from evenflow.scheduler.protocol.requests import Autoscale, Cancel, MoveKeys, Scale, ShowHistory, ShowView
from evenflow.testing.settings import changed

INTERVAL = 10.0


class Job(ActingJob):
    """A job of `generate` (100 records/s) and `count`, with one worker each by default."""

    def __init__(self, policy="ds2", parallelism=1, bounds=None, **config):
        flow = ef.Dataflow("f")
        rows = flow.read(ef.generate(rate=100.0))
        counts = rows.key_by("key").aggregate(n=ef.count()).named("count").parallelism(**(bounds or {}))
        counts.write(ef.to_list([], name="out"))
        autoscale = ef.AutoscaleConfig(mode="act", interval=INTERVAL, max_parallelism=8)
        settings = ef.JobConfig(
            parallelism=parallelism, key_groups=16, combine=False, autoscale=autoscale, checkpoint=ef.CheckpointConfig(interval=None)
        )
        settings = changed(changed(settings, **config), autoscale={"policy": policy})
        self.backlog = 0
        super().__init__(flow.plan(config=settings), settings)

    @property
    def workers(self):
        return {stage.name: stage.parallelism for stage in self.core.plan.stages}

    def measure(self, **useful):
        """Report a window of every worker with its even share of 100 records; `useful`: seconds of all of an operator's workers,
        or of each.
        """
        for name, workers in self.workers.items():
            each = useful.get(name, 0.5)
            parts = list(each) if isinstance(each, tuple) else [each / workers] * workers
            for i, part in enumerate(parts):
                rows = max(int(100 * part / sum(parts)), 1)
                worker = f"{name}-{i}"
                groups = np.array([i], np.int32) if name == "count" else np.zeros(0, np.int32)
                load = np.full(len(groups), part)
                out = rows if name == "generate" else 0
                backlog = self.backlog if name == "generate" else None
                window = WorkerWindow(
                    worker, self.now, 1.0, rows, out, useful=part, groups=groups, load=load, keyed_records=rows, backlog=backlog
                )
                self.report(worker, window)

    def look(self, **useful):
        """Let the warm-up and an interval pass without moves, with measurements, until the policy observes."""
        self.tick()
        self.tick(INTERVAL)
        self.measure(**useful)
        self.now += INTERVAL
        self.measure(**useful)
        self.tick()

    def go_on(self):
        """Carry out all commands at once, until nothing is under way."""
        for _ in range(ROUNDS):
            self.settle()
            self.tick(0.1)
            if not (self.commands or self.pending) and all(record.done != "under way" for record in self.decisions):
                return
        raise AssertionError(f"after {ROUNDS} rounds this is still under way: {self.ask(ShowHistory(ScalingReport))}")

    @property
    def decisions(self):
        return self.ask(ShowHistory(DecisionRecord))

    @property
    def scaled(self):
        return [(report.operator, report.before, report.after) for report in self.ask(ShowHistory(ScalingReport))]


def test_operators_get_the_workers_that_the_policy_decides_the_last_one_first():
    job = Job()
    job.look(generate=1.5, count=4.0)
    job.go_on()
    assert job.scaled == [("count", 1, 4), ("generate", 1, 2)]
    assert job.workers == {"generate": 2, "count": 4}


def test_decision_records_the_figures_the_choice_the_reason_and_the_result():
    job = Job()
    job.look(count=4.0)
    assert [record.done for record in job.decisions] == ["under way"]
    job.go_on()
    (record,) = job.decisions
    assert (record.policy, record.seen.parallelism, dict(record.decided.parallelism)) == ("ds2", {"generate": 1, "count": 1}, {"count": 4})
    assert record.decided.reason.startswith("count needs 4.00 workers and has 1")
    assert record.done.startswith("carried out in ")
    assert job.ask(ShowHistory(ScalingReport))[0].reason == f"ds2, automatic: {record.decided.reason}"
    assert pickle.loads(pickle.dumps(job.decisions)) == job.decisions


def test_idle_operators_give_workers_back():
    job = Job(parallelism=2)
    job.look(generate=0.5, count=0.5)
    job.go_on()
    assert job.scaled == [("generate", 2, 1), ("count", 2, 1)]
    assert job.workers == {"generate": 1, "count": 1}


def test_operators_with_enough_workers_are_left_alone():
    job = Job()
    for _ in range(3):
        job.look(generate=0.9, count=0.9)
    assert (job.decisions, job.scaled) == ([], [])


def test_policy_that_advises_is_recorded_and_changes_nothing():
    job = Job(autoscale={"mode": "advise"})
    job.look(count=4.0)
    assert [(dict(record.decided.parallelism), record.done) for record in job.decisions] == [({"count": 4}, ADVISED)]
    assert job.core._answering.status().advice == f"ds2 would give `count` 4 workers (1 now); {ADVISED}"
    assert (job.scaled, job.commands, job.pending) == ([], [], [])


def test_bounds_are_the_jobs():
    job = Job(autoscale={"max_parallelism": 3, "min_parallelism": 2})
    job.look(generate=0.1, count=9.0)
    job.go_on()
    assert job.workers == {"generate": 2, "count": 3}


def test_first_look_waits_for_the_warm_up_and_an_interval():
    job = Job()
    job.tick()
    job.measure(count=4.0)
    job.tick(INTERVAL)
    job.measure(count=4.0)
    job.tick(INTERVAL - 1)
    job.measure(count=4.0)
    job.tick()
    assert job.decisions == []
    job.tick(1)
    assert len(job.decisions) == 1


def test_measurements_of_the_warm_up_do_not_count():
    job = Job()
    job.tick()
    job.measure(count=9.0)
    job.tick(INTERVAL)
    job.measure(count=9.0)
    job.tick(2 * INTERVAL)
    assert job.decisions == []
    job.measure(count=2.0)
    job.tick()
    assert dict(job.decisions[0].decided.parallelism) == {"count": 2}


def test_nothing_is_decided_until_every_worker_has_measured():
    job = Job()
    job.tick()
    job.tick(INTERVAL)
    for start in range(5):
        job.report("count-0", WorkerWindow("count-0", start, 1.0, rows_in=100, useful=4.0))
    job.tick(5 * INTERVAL)
    job.tick(5 * INTERVAL)
    assert job.decisions == []


def test_nothing_is_decided_while_keys_move_by_hand_nor_until_the_move_is_an_interval_ago():
    job = Job(policy="off", parallelism=2)
    job.ask(Autoscale("ds2", "act"))
    job.tick()
    job.ask(MoveKeys("count", (0,), (), 1, "sudden"))
    job.look(count=4.0)
    assert job.decisions == []
    job.obey()
    job.tick(INTERVAL)
    assert job.decisions == []
    job.look(count=4.0)
    assert len(job.decisions) == 1


def test_backlog_that_a_move_by_hand_left_is_worked_off_before_anything_is_decided():
    job = Job(policy="off", parallelism=2)
    job.ask(Autoscale("ds2", "act"))
    job.tick()
    job.ask(MoveKeys("count", (0,), (), 1, "sudden"))
    job.tick()
    job.obey()
    job.backlog, decided = 40_000, []
    job.look(count=4.0)
    for job.backlog in (20_000, 5_000, 400):
        job.now += INTERVAL
        job.measure(count=4.0)
        job.tick()
        decided.append(len(job.decisions))
    assert decided == [0, 0, 1]


def test_bounds_of_an_operator_go_before_the_jobs():
    job = Job(bounds={"between": (1, 12)})
    job.look(generate=0.5, count=10.0)
    job.go_on()
    assert job.workers == {"generate": 1, "count": 10}


def test_fixed_operator_keeps_its_workers():
    job = Job(bounds={"fixed": True})
    job.look(generate=1.5, count=4.0)
    job.go_on()
    assert job.workers == {"generate": 2, "count": 1}


def test_no_more_workers_come_at_once_than_the_settings_say():
    job = Job(autoscale={"max_change": 2})
    job.look(count=6.0)
    job.go_on()
    assert job.scaled == [("count", 1, 3)]


def test_policy_decides_by_its_own_settings():
    job = Job(policy=ef.Ds2(min_change=4))
    job.look(count=4.0)
    assert job.decisions == []
    assert job.ask(ShowView()).own_settings == {"ds2": {"min_change": 4}}
    job.ask(Autoscale("ds2", "act"))
    job.look(count=4.0)
    assert job.decisions == []
    job.ask(Autoscale(ef.Ds2(min_change=2), "act"))
    assert job.ask(ShowView()).own_settings == {"ds2": {"min_change": 2}}
    job.look(count=4.0)
    job.go_on()
    assert job.scaled == [("count", 1, 4)]


def test_policy_of_another_name_has_its_defaults_and_the_configured_one_is_still_known():
    job = Job(policy=ef.Ds2(min_change=4))
    job.ask(Autoscale("threshold", "advise"))
    assert job.core.autoscaling.policy == "threshold"
    assert job.ask(ShowView()).own_settings == {"ds2": {"min_change": 4}, "threshold": {}}
    job.ask(Autoscale("off", "act"))
    assert (job.core.autoscaling.policy, job.ask(ShowView()).own_settings) == ("off", {"ds2": {"min_change": 4}})


def test_scaling_by_hand_puts_the_next_look_off():
    job = Job()
    job.tick()
    job.ask(Scale("count", 2))
    job.look(count=4.0)
    assert job.decisions == []


def test_keys_of_a_hot_worker_are_rebalanced_by_the_jobs_balancer():
    job = Job(parallelism=2)
    job.look(generate=1.5, count=(1.3, 0.2))
    job.go_on()
    (record,) = job.decisions
    assert record.decided.rebalance == ("count",)
    assert record.done.startswith("carried out")
    assert [m.reason.split(":")[0] for m in job.ask(ShowHistory(MigrationReport))] == ["hotspot, for ds2"]


def test_step_that_fails_ends_the_decision_and_is_reported():
    job = Job()
    job.look(generate=1.5, count=4.0)
    job.not_spawned("no room for count-1")
    job.tick()
    job.tick()
    (record,) = job.decisions
    assert record.done == "refused: count to 4 workers: no room for count-1"
    assert job.workers == {"generate": 1, "count": 1}
    assert job.scaled == [("count", 1, 4)]
    job.look(count=4.0)
    assert len(job.decisions) == 2


def test_policy_that_can_not_decide_scales_no_more_and_the_log_says_why(monkeypatch):
    def undecided(self, time, seen):
        raise RequestError("the figures make no sense")

    job = Job()
    monkeypatch.setattr(Controller, "observe", undecided)
    job.look()
    assert job.core.autoscaling.policy == "off"
    (warning,) = [effect for effect in job.pending if isinstance(effect, Warn)]
    assert warning.text == "job `f` is no longer scaled: its policy ds2 can't decide: the figures make no sense"


def test_switched_off_it_decides_nothing_more_and_keeps_what_it_decided():
    job = Job()
    job.look(generate=1.5, count=4.0)
    job.ask(Autoscale("off", "act"))
    job.go_on()
    assert [record.done for record in job.decisions] == ["refused: the autoscaler was switched to off"]
    assert job.workers == {"generate": 1, "count": 4}
    job.look(generate=9.0)
    assert len(job.decisions) == 1
    job.ask(Autoscale("threshold", "advise"))
    job.look(generate=9.0)
    assert [record.policy for record in job.decisions][:2] == ["ds2", "threshold"]


def test_job_that_ends_in_the_middle_of_a_decision_says_so():
    job = Job()
    job.look(count=4.0)
    job.ask(Cancel())
    job.tick()
    assert job.decisions[0].done == "refused: the job has ended"


@pytest.mark.parametrize("policy", ["dhalion", "threshold", "queueing", "pid", "latency", "stela"])
def test_every_policy_can_look_at_a_running_job(policy):
    job = Job(policy=policy, autoscale={"latency_target": "100ms"})
    for _ in range(4):
        job.look(generate=0.5, count=0.9)
        job.go_on()
    assert job.core.autoscaling.policy == policy


@pytest.mark.parametrize(
    ("policy", "mode", "words"),
    [
        pytest.param("ds3", "act", "'ds3' can't scale a job: use ds2, .*, off", id="unknown policy"),
        pytest.param("ds2", "ask", "mode is 'ask'; expected one of act, advise", id="unknown mode"),
        pytest.param(
            "pid", "act", 'pid keeps a latency: say which, for example AutoscaleConfig\\("pid", latency_target="200ms"\\)', id="no target"
        ),
    ],
)
def test_policy_that_cannot_work_is_refused_and_the_one_before_goes_on(policy, mode, words):
    job = Job()
    with pytest.raises(RequestError, match=words):
        job.ask(Autoscale(policy, mode))
    assert job.core.autoscaling.policy == "ds2"
