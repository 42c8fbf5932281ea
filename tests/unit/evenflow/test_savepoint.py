"""A savepoint is read without its flow: operators, and their keyed state as Arrow tables; the command that shows checkpoints."""

from __future__ import annotations

import threading
import time
from itertools import chain, repeat

import pyarrow as pa
import pytest
from patience import patience

import evenflow as ef
from evenflow import dataflow
from evenflow.actors.local import LocalJob
from evenflow.cli import main
from evenflow.engine.errors import ConnectorError, RequestError
from evenflow.scheduler.protocol.reports import CheckpointReport, CheckpointState

PATIENCE = patience(60)
ROWS = 300


def remember(state, row):
    n, seen = state if state is not None else (0, [])
    return (n + 1, [*seen, row["seq"]][-2:]), None


def mixed(state, row):
    return {0: 1, 1: "one"}.get(row["seq"] % 2), None


def running(state, rows):
    return {"n": rows.last(rows.running_count(state["n"]))}, None


@pytest.fixture
def job(waiting_for_jobs, monkeypatch, tmp_path):
    """Start a job that has read 300 rows of 3 keys and waits for more. Its handle sleeps between polls, not the test."""
    flow = ef.Dataflow("shop")
    times = chain((0.0,), repeat(100.0))
    source = ef.generate(rate=ROWS / 100, keys=3, string_keys=True, event_rate=100.0, clock=lambda: next(times))
    keyed = flow.read(source).parallelism(1).key_by("key")
    for name, stream in {
        "remembered": keyed.stateful_map(remember),
        "mixed": keyed.stateful_map(mixed),
        "counted": keyed.stateful_map_columns(running, state={"n": "int64"}),
        "totals": keyed.aggregate(n=ef.count(), total=ef.sum("value"), emit="final"),
        "windows": keyed.window(ef.tumbling("2s")).aggregate(n=ef.count()),
    }.items():
        stream.named(name).write(ef.to_list([], name=f"to_{name}"))
    config = ef.JobConfig(
        parallelism=2, key_groups=16, combine=False, checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval=None)
    )
    job = flow.run(runtime="local", config=config)
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while sum(figures.rows_in for figures in job.metrics() if figures.operator == "windows") < ROWS:
        assert time.monotonic() < deadline, "the rows were not read"
        pause.wait(0.02)
    yield job
    job.cancel()
    job.wait("30s")


def test_state_of_every_operator_is_read_as_a_table(job, tmp_path):
    saved = ef.read_savepoint(job.savepoint(tmp_path / "savepoint"))
    assert (saved.job, saved.checkpoint, saved.operators["generate"].keys) == ("shop", 1, 0)
    assert saved.operators["totals"].chain == ("totals", "to_totals")
    assert (saved.operators["totals"].workers, saved.operators["totals"].keys) == (2, 3)

    remembered = saved.state("remembered")
    assert remembered.schema.names == ["key", "state"]
    assert sum(int(state.partition(",")[0].strip("(")) for state in remembered["state"].to_pylist()) == ROWS
    assert set(saved.state("mixed")["state"].to_pylist()) <= {"1", "'one'", 1, "one"}
    counted = saved.state("counted")
    assert counted.schema.names == ["key", "n"]
    assert sum(counted["n"].to_pylist()) == ROWS
    totals = saved.state("totals")
    assert totals.schema.names[:2] == ["key", "rows"]
    assert sorted(totals["key"].to_pylist()) == ["key-0", "key-1", "key-2"]
    assert sum(totals["rows"].to_pylist()) == ROWS
    windows = saved.state("windows")
    assert windows.schema.names[:3] == ["key", "pane", "rows"]
    assert windows.schema.field("pane").type == pa.timestamp("us", tz="UTC")


def test_checkpoint_is_read_as_a_savepoint_is(job, tmp_path):
    job.checkpoint()
    assert ef.read_savepoint(tmp_path / "checkpoints" / "shop" / "checkpoint-00000001").operators["totals"].keys == 3


def test_a_relative_checkpoint_folder_is_that_of_the_process_that_starts_the_job(waiting_for_jobs, monkeypatch, tmp_path):
    """The working directory of Ray's processes is another where the cluster ran already."""
    given = []

    def start(plan, config, savepoint, claim):
        given.append(config.checkpoint.url("here"))
        return LocalJob(plan, config, savepoint, claim)

    monkeypatch.setattr(dataflow, "_runtime", lambda name: start)
    monkeypatch.chdir(tmp_path)
    flow = ef.Dataflow("here")
    flow.read(ef.from_items([])).write(ef.to_list([]))
    flow.run(config=ef.JobConfig(checkpoint=ef.CheckpointConfig("saved/"))).wait("60s")
    assert given == [str(tmp_path / "saved/here")]


def test_a_missing_or_damaged_file_is_named(job, tmp_path):
    path = job.savepoint(tmp_path / "savepoint")
    saved = ef.read_savepoint(path)
    with pytest.raises(RequestError, match="has no state of an operator `totalz`; there is state of: remembered, mixed, counted, totals"):
        saved.state("totalz")
    with pytest.raises(ConnectorError, match=r"nowhere can't be read as a savepoint: .*manifest is gone"):
        ef.read_savepoint(tmp_path / "nowhere")
    file = next((tmp_path / "savepoint").glob("totals-*.state"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ConnectorError, match=r"is damaged: totals-.*state has .* bytes, and"):
        saved.state("totals")


def test_checkpoints_are_shown_as_a_table(job, capsys, monkeypatch):
    job.checkpoint()
    monkeypatch.setattr(ef, "connect", lambda name: job)
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["checkpoints", "shop"]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in ("no.", "seconds", "keys", "bytes", "complete"))
    assert "checkpoint 1 complete in " in str(job.checkpoints()[0])


def test_failed_checkpoint_says_why():
    problem = "count-0: OSError: the disk is full"
    report = CheckpointReport(number=3, state=CheckpointState.FAILED, reason="by hand", seconds=0.25, problem=problem)
    assert str(report) == "checkpoint 3 failed in 0.250 s: by hand; count-0: OSError: the disk is full"
