"""The commands about load and migrations, on jobs of this process in place of those of a cluster."""

from __future__ import annotations

import json
import threading
import time

import pytest
from patience import patience, until

import evenflow as ef
from evenflow.balancer.snapshot_json import snapshot_from_json
from evenflow.cli import main

PATIENCE = patience(60)


def count(state, row):
    return (state or 0) + 1, None


@pytest.fixture
def job(waiting_for_jobs, monkeypatch):
    """Start an unbounded job whose hottest key is 0. Its handle sleeps between polls, not the test."""
    flow = ef.Dataflow("shop")
    rows = flow.read(ef.generate(keys=100, zipf=1.2, rows_per_batch=1024))
    rows.key_by("key").stateful_map(count).write(ef.to_callback(lambda row: None))
    metrics, by_hand = ef.MetricsConfig(window="50ms"), ef.BalanceConfig("off")
    job = flow.run(runtime="local", config=ef.JobConfig(parallelism=2, key_groups=64, metrics=metrics, balance=by_hand))
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while not job.load("stateful_map").hot_keys:
        assert time.monotonic() < deadline, "no load was reported"
        pause.wait(0.02)
    monkeypatch.setattr(ef, "connect", lambda name: job)
    monkeypatch.setenv("COLUMNS", "120")
    yield job
    job.cancel()
    job.wait("30s")


def test_load_shows_workers_groups_keys_imbalance_and_its_floor(job, capsys):
    assert main(["load", "shop", "stateful_map", "--windows", "10"]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in ("stateful_map-0", "stateful_map-1", "imbalance", "floor", "hottest groups", "hottest keys", "█"))


def test_printed_load_says_how_even_it_is_and_which_keys_are_hot(job):
    text = str(job.load("stateful_map"))
    assert "load of 2 workers: imbalance" in text
    assert "hottest keys" in text


def test_keys_and_groups_move_by_hand(job, capsys):
    assert main(["migrate", "shop", "stateful_map", "--groups", "0-3,7", "--keys", "0", "--to", "1", "--strategy", "sudden"]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in ("sudden", "done", "by hand"))
    assert job.migrations()[0].groups == 5
    assert main(["migrations", "shop"]) == 0
    assert " by hand" in capsys.readouterr().out


def test_rebalancing_says_what_was_planned(job, capsys):
    assert main(["rebalance", "shop", "stateful_map", "--policy", "lpt", "--strategy", "fluid"]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in ("lpt, by hand: longest processing time first", "fluid", "imbalance"))


def test_a_snapshot_can_be_planned_with(job, tmp_path, capsys):
    path = tmp_path / "load.json"
    assert main(["snapshot", "shop", "stateful_map", "--output", str(path)]) == 0
    assert snapshot_from_json(path.read_text()).workers == 2
    capsys.readouterr()
    assert main(["plan", "balance", "--snapshot", str(path)]) == 0
    assert "imbalance_before" in json.loads(capsys.readouterr().out)


def test_a_snapshot_goes_to_standard_output_by_default(job, capsys):
    assert main(["snapshot", "shop", "stateful_map"]) == 0
    assert snapshot_from_json(capsys.readouterr().out).workers == 2


def test_the_balancer_is_switched(job, capsys):
    assert main(["balancer", "shop", "stateful_map", "lpt"]) == 0
    assert main(["balancer", "shop", "stateful_map", "off"]) == 0
    text = capsys.readouterr().out
    assert "is balanced by lpt from now on" in text
    assert "is no longer balanced" in text


def test_top_prints_one_picture(job, capsys):
    job.migrate("stateful_map", groups=[1], to=1)
    parts = (
        "shop running",
        "generate-0",
        "stateful_map-1",
        "in/s",
        "lag",
        "hottest keys 0",
        "decisions",
        "person, stateful_map: moves 1 key group",
        "heat of its key groups",
        "floor",
    )

    def missing():
        assert main(["top", "shop", "--once"]) == 0
        text = capsys.readouterr().out
        return [part for part in parts if part not in text]

    until(lambda: not missing())  # a picture of a window in which a worker had no processor lacks its load


def test_top_ends_with_the_job(job, capsys):
    job.cancel()
    assert main(["top", "shop", "--interval", "0.1"]) == 0
    assert "shop has ended: it is cancelled" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["migrate", "shop", "stateful_map", "--groups", "0", "--to", "2"], "has no worker 2"),
        (["load", "shop", "nothing"], "nothing"),
        (["snapshot", "shop", "stateful_map", "--output", "/nowhere/load.json"], "can't be written to /nowhere/load.json"),
        (["rebalance", "shop", "generate"], "has no keyed state to move"),
    ],
)
def test_an_impossible_request_is_one_clear_line(job, capsys, words, message):
    assert main(words) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_migration_of_nothing_is_a_wrong_command_line(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["migrate", "shop", "stateful_map", "--to", "1"])
    assert ended.value.code == 2
    assert "error: name what to move, with --groups 0-99,120 or --keys JFK LAX" in capsys.readouterr().err


@pytest.mark.parametrize("groups", ["a", "1-b", "1,,2"])
def test_groups_that_are_no_ranges_are_a_wrong_command_line(groups, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["migrate", "shop", "stateful_map", "--groups", groups, "--to", "1"])
    assert ended.value.code == 2
    assert "it must be like 0-99,120" in capsys.readouterr().err
