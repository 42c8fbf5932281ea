"""The commands about the number of workers, on a job of this process in place of those of a cluster."""

from __future__ import annotations

import threading

import pytest
from patience import patience

import evenflow as ef
from evenflow.cli import main

PATIENCE = patience(60)


@pytest.fixture
def job(waiting_for_jobs, monkeypatch):
    """Start an unbounded job. Its handle sleeps between polls, not the test."""
    flow, flowing = ef.Dataflow("shop"), threading.Event()
    rows = flow.read(ef.generate(keys=100, rate=2_000))
    rows.write(ef.to_callback(lambda row: flowing.set()))
    rows.key_by("key").aggregate(n=ef.count()).write(ef.to_callback(lambda row: None))
    job = flow.run(runtime="local", config=ef.JobConfig(parallelism=2, key_groups=16))
    assert flowing.wait(PATIENCE)
    monkeypatch.setattr(ef, "connect", lambda name: job)
    monkeypatch.setenv("COLUMNS", "120")
    yield job
    job.cancel()
    job.wait("30s")


def test_an_operator_is_scaled_and_what_was_done_is_shown(job, capsys):
    assert main(["scale", "shop", "aggregate", "3", "--strategy", "sudden"]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in ("aggregate", "2 to 3", "done", " by hand"))
    assert job.migrations()[-1].strategy == "sudden"
    assert main(["scale", "shop", "aggregate", "1"]) == 0
    capsys.readouterr()
    assert main(["scalings", "shop"]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in ("2 to 3", "3 to 1"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["scale", "shop", "aggregate", "17"], "operator `aggregate` can't have 17 workers: it has 16 key groups"),
        (["scale", "shop", "nothing", "2"], "has no operator `nothing`"),
        (["scale", "shop", "--out-nodes", "1"], "job `shop` runs in one process and has no nodes: run it on Ray"),
        (["scale", "shop", "--in-nodes", "1"], "job `shop` runs in one process and has no nodes: run it on Ray"),
    ],
)
def test_an_impossible_request_is_one_clear_line(job, capsys, words, message):
    assert main(words) == 1
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("words", [[], ["aggregate"], ["aggregate", "2", "--in-nodes", "1"], ["--out-nodes", "1", "--in-nodes", "1"]])
def test_more_or_less_than_one_thing_to_scale_is_a_wrong_command_line(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["scale", "shop", *words])
    assert ended.value.code == 2
    assert "scale one thing at a time: OPERATOR N, --out-nodes NODES, or --in-nodes NODES" in capsys.readouterr().err


def test_a_wrong_number_of_workers_is_a_wrong_command_line(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["scale", "shop", "aggregate", "many"])
    assert ended.value.code == 2
    assert "invalid int value: 'many'" in capsys.readouterr().err
