"""The commands about automatic scaling, on a job of this process in place of one of a cluster."""

from __future__ import annotations

import json

import pytest
from patience import until

import evenflow as ef
from evenflow.cli import main
from evenflow.scheduler.policies.dataflow.snapshot_json import snapshot_from_json


@pytest.fixture
def job(waiting_for_jobs, monkeypatch):
    """Start a job with four workers for 1,000 rows a second, where one is enough. Its handle sleeps between polls, not the test."""
    flow = ef.Dataflow("shop")
    rows = flow.read(ef.generate(keys=100, rate=1000.0)).key_by("key")
    rows.aggregate(n=ef.count()).parallelism(4).write(ef.to_list([]))
    config = ef.JobConfig(
        key_groups=64, metrics=ef.MetricsConfig(window="50ms"), autoscale=ef.AutoscaleConfig("off", interval="250ms", max_parallelism=4)
    )
    job = flow.run(runtime="local", config=config)
    monkeypatch.setattr(ef, "connect", lambda name: job)
    monkeypatch.setenv("COLUMNS", "120")
    yield job
    job.cancel()
    job.wait("30s")


def about_the_aggregate(job):
    """Return the decisions that change the aggregate's workers; slow first batches of the other operator may cause others."""
    return [(number, record) for number, record in enumerate(job.decisions()) if "aggregate" in record.decided.parallelism]


def workers(job):
    return sum(figures.operator == "aggregate" for figures in job.metrics())


def test_a_job_without_an_autoscaler_has_decided_nothing(job, capsys):
    assert main(["decisions", "shop"]) == 0
    assert "decisions" in capsys.readouterr().out
    assert main(["decisions", "shop", "--seen", "0"]) == 1
    assert "has no decision 0: it has 0, numbered from 0" in capsys.readouterr().err


def test_advice_is_shown_with_its_reason_and_the_job_stays_as_it_is(job, capsys):
    assert main(["autoscaler", "shop", "ds2"]) == 0
    assert "shop is watched by ds2, which only advises (--mode act carries it out), from now on" in capsys.readouterr().out
    until(lambda: about_the_aggregate(job))
    assert main(["autoscaler", "shop", "off"]) == 0
    assert "shop is no longer scaled" in capsys.readouterr().out
    assert main(["decisions", "shop"]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in ("ds2", "aggregate 4 -> ", "advised only", "workers and has 4"))
    assert workers(job) == 4


def test_a_job_that_is_scaled_gives_back_workers_that_it_does_not_need(job, capsys):
    assert main(["autoscaler", "shop", "ds2", "--mode", "act"]) == 0
    assert "shop is scaled by ds2 from now on" in capsys.readouterr().out
    _, done = until(lambda: [one for one in about_the_aggregate(job) if one[1].done.startswith("carried out")])[0]
    assert done.decided.parallelism["aggregate"] < done.seen.parallelism["aggregate"] == 4
    assert all(report.reason.startswith("ds2, automatic: ") for report in job.scalings())


def test_the_snapshot_behind_a_decision_can_be_printed(job, tmp_path, capsys):
    job.autoscaler("ds2", mode="advise")
    number, _ = until(lambda: about_the_aggregate(job))[0]
    job.autoscaler("off")
    assert main(["decisions", "shop", "--json"]) == 0
    decision = json.loads(capsys.readouterr().out.splitlines()[number])
    assert (decision["policy"], decision["before"]["aggregate"]) == ("ds2", 4)
    assert main(["decisions", "shop", "--seen", str(number)]) == 0
    path = tmp_path / "dataflow.json"
    path.write_text(capsys.readouterr().out)
    assert snapshot_from_json(path.read_text()).parallelism["aggregate"] == 4
    assert main(["plan", "scale", "--policy", "ds2", "--snapshot", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["parallelism"]["aggregate"] == decision["parallelism"]["aggregate"]
