"""Output that a user prints from a shell fits 80 columns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import evenflow as ef
from evenflow.balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot
from evenflow.cli import main
from evenflow.scheduler.load.metrics import OperatorLoad, WorkerFigures
from evenflow.scheduler.policies.controller import DecisionRecord
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot
from evenflow.scheduler.policies.decision import ScalingDecision
from evenflow.scheduler.protocol.reports import (
    MigrationReport,
    MigrationState,
    NodeScalingReport,
    NodeScalingState,
    ScalingReport,
    ScalingState,
)
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.terminal.console import as_text
from evenflow.terminal.listing import Listing
from evenflow.terminal.metrics import metrics_tables

QUESTIONS = ("metrics", "status", "checkpoints", "migrations", "scalings", "node_scalings", "decisions")


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def job(waiting_for_jobs, monkeypatch):
    """Start an unbounded job in this process."""
    flow = ef.Dataflow("shop")
    numbers = flow.read(ef.generate(rate=5000, keys=50))
    numbers.key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
    job = flow.run(
        runtime="local",
        parallelism=2,
        config=ef.JobConfig(key_groups=16, metrics=ef.MetricsConfig(window="50ms"), checkpoint=ef.CheckpointConfig(interval="100ms")),
    )
    monkeypatch.setattr(ef, "connect", lambda name: job)
    yield job
    job.cancel()
    job.wait("30s")


def readable(text: str) -> None:
    assert max(map(len, text.splitlines())) <= 80
    assert not any(raw in text for raw in ("WorkerFigures(", "Report(", "Record(", "JobStatus(", "…", "None"))


def test_answers_of_a_job_print_as_tables(job):
    job.checkpoint()
    job.scale("count", 3)
    job.rebalance("count")
    for question in QUESTIONS:
        readable(str(getattr(job, question)()))
    readable(str(job.load("count")))
    assert "count: 3 workers" in str(job.metrics())
    assert "job `shop`: running" in str(job.status())
    assert "2 to 3" in str(job.scalings())
    assert len(job.checkpoints()) >= 1
    assert isinstance(job.metrics(), list)


@pytest.mark.parametrize("words", [["metrics", "shop"], ["metrics", "shop", "--totals"], ["status", "shop"], ["checkpoints", "shop"]])
def test_commands_are_readable_at_eighty_columns(words, job, capsys):
    assert main(words) == 0
    shown = capsys.readouterr().out
    readable(shown)
    assert ("rows in" in shown) == ("--totals" in words)


def busy(worker: str, operator: str) -> WorkerFigures:
    """Return a worker's figures, each as wide as it gets."""
    return WorkerFigures(
        worker, operator, 123_456_789_012, 123_456_789_012, 123_456_789.0, 99_950.0, 1.0, 1.0, 1.0, 12_345,
        datetime(2013, 5, 31, 12, tzinfo=UTC), 999 * 2**30 + 2**29, 123_456, 123_456, 123_456, (1234.5, 12_345.6),
    )  # fmt: skip


def test_figures_of_a_busy_job_fit_and_nothing_of_them_is_cut_or_folded():
    text = as_text(metrics_tables([busy("count-10", "count"), busy("a.long-name-0", "a.long-name")]))
    readable(text)
    lines = [line.split() for line in text.splitlines()]
    assert ["10", "123M", "100k", "100%", "100%", "100%", "12.3k", "1000", "GiB", "1234/12346"] in lines
    assert "count: 1 worker, event time 2013-05-31 12:00:00, 123,456 late records, 123,456\nskipped records" in text
    assert "a.long-name: 1 worker" in text


def test_totals_fit_too():
    text = as_text(metrics_tables([busy("count-10", "count")], totals=True))
    readable(text)
    assert "10 123,456,789,012 123,456,789,012 123,456 123,456 123,456 0.0 s" in " ".join(text.split())


def test_reports_print_in_a_sentence_without_any_drawing():
    scaling = ScalingReport(
        number=0, state=ScalingState.DONE, reason="by hand", seconds=1.5, operator="count[eu]", before=2, after=3,
        keys_moved=1234, state_bytes=5678,
    )  # fmt: skip
    nodes = NodeScalingReport(
        number=0, state=NodeScalingState.DONE, reason="busy", seconds=1.5, added=("ab12cd34ef",), removed=None,
        parallelism={"count[/b]": (2, 3)}, replaced=(),
    )  # fmt: skip
    seen = DataflowSnapshot((OperatorFigures("count[/b]", 2),))
    decision = DecisionRecord(0.0, "ds2", seen, ScalingDecision({"count[/b]": 3}, reason="count[/b] needs 2.5"), "done")
    migration = MigrationReport(
        number=4, state=MigrationState.DONE, reason="hot", seconds=0.25, operator="count", strategy="fluid", plan=None,
        groups=3, routed_keys=1, steps=4, steps_done=4, keys_moved=1234, state_bytes=5678,
    )  # fmt: skip
    error = ef.JobError("disk full")
    error.add_note("a file is gone too")
    load = OperatorLoad({"a-0": 0.75, "a-1": 0.25}, {3: 0.6}, (("JFK", 60),), 100)
    status = JobStatus("shop", ef.JobState.FAILED, error, ("a-0", "a-1"), 3, 1.25)
    for report, parts in (
        (migration, ("migration 4 of `count` by fluid done in 0.250 s: 4 of 4 steps, 1,234 keys, 5,678 bytes; hot",)),
        (status, ("`shop`: failed, 1.2 s, 3 check", "2 workers: a-0, a-1", "gone too")),
        (load, ("load of 2 workers", "a-0: useful 75.0%", "3 60.0%", "'JFK' 60.0%")),
        (scaling, ("scaling 0 of `count[eu]`", "2 to 3 workers done", "1,234 keys", "by hand")),
        (nodes, ("node scaling 0, node ab12cd34 added, done in 1.500 s", "count[/b] 2 to 3 workers; busy")),
        (decision, ("count[/b] 2 -> 3", "count[/b] needs 2.5")),
        (Listing([decision], lambda records: str(records[0])), ("count[/b] 2 -> 3",)),
        (LoadSnapshot(2, [GroupLoad(0, 0, 3.0)], [KeyLoad("JFK", 0, 2.5)]), ("2 workers, 1 key groups", "imbalance 2.00, floor 1.67")),
    ):
        assert all(part in str(report) for part in parts)
