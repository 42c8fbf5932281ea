"""The checkpoints in a folder or an object store are listed without a job."""

from __future__ import annotations

import time
import uuid

import pytest
from patience import patience

import evenflow as ef
from evenflow.cli.command_line import main

PATIENCE = patience(60)
SLEEP = time.sleep


@pytest.fixture(autouse=True)
def polling(monkeypatch):
    monkeypatch.setattr(time, "sleep", SLEEP)  # the job's handle polls


@pytest.fixture(params=["folder", "memory"])
def folder(request, tmp_path):
    return str(tmp_path / "saved") if request.param == "folder" else f"memory://{uuid.uuid4().hex}"


def run(name, folder, **options):
    """Run a job until each of its five keys has a row in a checkpoint; return it and the first row of each key."""
    flow, first = ef.Dataflow(name), {}
    rows = flow.read(ef.generate(rate=1_000, every="20ms", keys=5, string_keys=True)).key_by("key")
    counted = rows.stateful_map(lambda n, row: ((n or 0) + 1, {"key": row["key"], "n": n or 0})).named("counted")
    counted.write(ef.to_callback(lambda row: first.setdefault(row["key"], row["n"])))
    job = flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(folder, interval=None, kept=2)), **options)
    until = time.monotonic() + PATIENCE
    while len(first) < 5:
        job.checkpoint()
        assert time.monotonic() < until
    job.checkpoint()
    job.checkpoint()
    return job, first


def test_complete_checkpoints_of_all_jobs_are_listed_oldest_first(folder):
    for name in ("shop", "bank"):
        job, _ = run(name, folder)
        job.cancel()
        job.wait("60s")
    found = ef.list_checkpoints(folder)
    assert list(dict.fromkeys(saved.job for saved in found)) == ["bank", "shop"]
    assert found == [*ef.list_checkpoints(folder, "bank"), *ef.list_checkpoints(folder, "shop")]
    assert not any(saved.finished for saved in found)
    assert found[-1].keys >= 5
    assert found[-1].size > 0
    assert found[0].number < found[1].number
    assert found[0].created < found[1].created
    assert ef.read_savepoint(found[1].url).checkpoint == found[1].number


def test_the_latest_checkpoint_is_the_one_from_which_the_job_continues(folder):
    job, _ = run("shop", folder)
    job.stop()
    job.wait("60s")
    latest = ef.latest_checkpoint(folder, "shop")
    assert latest == ef.list_checkpoints(folder)[-1].url
    state = ef.read_savepoint(latest).state("counted")
    again, first = run("shop", f"{folder}-again", from_savepoint=latest)
    again.cancel()
    again.wait("60s")
    assert first == dict(zip(state["key"].to_pylist(), state["state"].to_pylist(), strict=True))


def test_where_nothing_was_saved_there_is_nothing(folder):
    assert ef.list_checkpoints(folder) == []
    assert ef.latest_checkpoint(folder, "shop") is None


def test_a_damaged_manifest_is_no_checkpoint(tmp_path):
    job, _ = run("shop", tmp_path)
    job.cancel()
    job.wait("60s")
    *_, before, damaged = ef.list_checkpoints(tmp_path)
    (tmp_path / "shop" / f"checkpoint-{damaged.number:08d}" / "manifest").write_bytes(b"no manifest")
    assert ef.list_checkpoints(tmp_path)[-1] == before
    assert ef.latest_checkpoint(tmp_path, "shop") == before.url


def test_a_store_that_can_not_be_opened_is_an_error():
    with pytest.raises(ef.EvenflowError, match="nope"):
        ef.list_checkpoints("nope://there/")


def test_the_command_shows_checkpoints_and_how_the_run_ended(tmp_path, capsys):
    job, _ = run("shop", tmp_path)
    job.cancel()
    job.wait("60s")
    assert main(["checkpoints", "--dir", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "can be continued" in shown
    assert shown.rstrip().endswith(": cancelled")
    assert main(["checkpoints", "--dir", str(tmp_path), "bank"]) == 0
    assert "shop" not in capsys.readouterr().out.replace(str(tmp_path), "")


def test_the_command_needs_a_job_or_a_folder(capsys):
    with pytest.raises(SystemExit):
        main(["checkpoints"])
    assert "name a running JOB, or a folder with --dir URL" in capsys.readouterr().err
