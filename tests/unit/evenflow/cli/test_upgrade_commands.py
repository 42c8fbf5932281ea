"""The commands about code, on a job of this process in place of one of a cluster."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from patience import patience, until

import evenflow as ef
from evenflow.cli import main
from evenflow.program import flow_of

PROGRAM = """
    import evenflow as ef

    def price(row):
        return {**row, "price": row["seq"] * FACTOR}

    flow = ef.Dataflow("shop")
    flow.read(ef.generate(keys=10, rate=2_000)).map(price).named("price").write(ef.to_callback(print_nothing))
    flow.run()
"""

NOTHING = "def print_nothing(row):\n    pass\n"


@pytest.fixture
def write(tmp_path):
    def written(factor):
        path = tmp_path / f"shop_{factor}.py"
        path.write_text(NOTHING + dedent(PROGRAM).replace("FACTOR", str(factor)))
        return str(path)

    return written


@pytest.fixture
def job(write, waiting_for_jobs, monkeypatch):
    config = ef.JobConfig(parallelism=2, metrics=ef.MetricsConfig(window="50ms"))
    job = flow_of(Path(write(1)), "shop").run(runtime="local", config=config)
    until(lambda: any(figures.rows_in for figures in job.metrics()))
    monkeypatch.setattr(ef, "connect", lambda name: job)
    monkeypatch.setenv("COLUMNS", "160")
    yield job
    job.cancel()
    job.wait("30s")


def test_a_dry_run_shows_what_would_change_and_changes_nothing(job, write, capsys):
    assert main(["upgrade", "shop", write(2), "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "price" in text
    assert "code" in text
    assert "replaces the workers of generate" in text
    assert len(job.upgrades()) == 0


def test_the_steps_of_an_upgrade_and_the_work_of_both_versions_are_shown(job, write, capsys):
    assert main(["upgrade", "shop", write(2), "--canary", "20%", "--watch", f"{patience(1):.1f}s", "--max-slowdown", "1e6"]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in ("watching the new code", "old and new code side by side", "done"))
    assert main(["upgrades", "shop"]) == 0
    assert "done" in capsys.readouterr().out
    assert main(["upgrade", "shop", write(2)]) == 0
    assert "nothing has changed" in capsys.readouterr().out


def test_an_upgrade_without_a_canary_needs_no_time(job, write, capsys):
    assert main(["upgrade", "shop", write(3), "--now"]) == 0
    assert "watching" not in capsys.readouterr().out


def test_an_upgrade_needs_a_program(job, capsys):
    with pytest.raises(SystemExit):
        main(["upgrade", "shop"])
    assert "name the new program" in capsys.readouterr().err


def test_without_an_upgrade_there_is_none_to_abort(job, capsys):
    assert main(["upgrade", "shop", "--abort"]) == 1
    assert "no upgrade is under way" in capsys.readouterr().err


def test_a_dry_run_of_a_program_that_needs_a_restart_fails(job, write, capsys, tmp_path):
    path = tmp_path / "other_keys.py"
    path.write_text(Path(write(4)).read_text().replace("keys=10", "keys=20"))
    assert main(["upgrade", "shop", str(path), "--dry-run"]) == 1
    assert "stop the job with a savepoint" in capsys.readouterr().out
