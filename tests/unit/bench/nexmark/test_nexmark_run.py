from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from evenflow.bench.harness.conditions import record
from evenflow.bench.harness.errors import BenchmarkError
from evenflow.bench.harness.plots import save_plot
from evenflow.bench.harness.record import Case
from evenflow.bench.harness.task import Answer
from evenflow.bench.nexmark import flink_environment
from evenflow.bench.nexmark import run as running
from evenflow.bench.nexmark.data import EventFiles
from evenflow.bench.nexmark.flink_sql import NOT_IN_FLINK, TABLES
from evenflow.bench.nexmark.flink_sql import QUERIES as IN_FLINK
from evenflow.bench.nexmark.queries import QUERIES
from evenflow.bench.nexmark.queries.oracles import ORACLES

EVENTS = 5_000


def write(task, folder, skipped=0):
    """Write the oracle's rows as a system does, without the first `skipped`."""
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW bid AS SELECT * FROM read_parquet('{folder}/parquet/bid/*.parquet')")
        Path(task.output).mkdir(parents=True)
        database.execute(f"COPY (SELECT * FROM ({ORACLES[task.name]}) OFFSET {skipped}) TO '{task.output}/rows.parquet'")


@pytest.fixture
def answers(monkeypatch):
    """Systems that answer at once, two seconds faster in every iteration, and write what `answers["writes"]` writes."""
    tasks = []
    given = {"writes": write, "tasks": tasks}

    def answer(system, task, timeout):
        tasks.append((system, task))
        given["writes"](task, task.options["checked"])
        held = {"state_bytes": 1_000} if system == "nexmark.evenflow" else {}
        return [Answer(10.0 - 2 * number, task.rows, {}, {"cpu_seconds": 4.6, **held}) for number in range(task.repeat)]

    monkeypatch.setattr(running, "run_system", answer)
    monkeypatch.setattr(running.machine, "busy_share", lambda: 0.0)
    return given


def run(tmp_path, *words):
    defaults = ("--queries", "q2", "--events", str(EVENTS), "--checked-events", "2000", "--folder", str(tmp_path))
    return running.run(running.BENCHMARK.parse([*defaults, *words]), lambda _: None)


def values_of(found):
    return {case.name: case.values for case in found.cases}


def test_rates_and_processor_time_are_of_the_rows_that_the_query_reads(answers, tmp_path):
    found = values_of(run(tmp_path))
    assert found["q2/evenflow"] == (460.0, 575.0, pytest.approx(766.7, abs=0.1))
    assert found["q2/evenflow, processor"] == pytest.approx((1000.0,) * 3)
    assert found["q2/evenflow, state"] == (1_000,) * 3
    ((system, task),) = answers["tasks"]
    assert (system, task.rows, task.options["input"]) == ("nexmark.evenflow", 4_600, "csv")
    assert EventFiles(Path(task.folder), EVENTS).of("csv", "bid").is_dir()


def test_rates_of_all_systems_are_drawn_by_query(answers, tmp_path, monkeypatch):
    monkeypatch.setattr(running.machine, "commit", lambda: "0123456789ab")
    found = run(tmp_path)
    found.cases.append(Case("q0/flink", "rows/s", "higher", (1e6,)))
    assert save_plot(record("nexmark", {}, found), tmp_path / "queries.png", running.draw)
    assert (tmp_path / "queries.png").read_bytes().startswith(b"\x89PNG")


def test_events_that_the_job_generates_are_in_no_files(answers, tmp_path):
    assert values_of(run(tmp_path, "--from", "generate"))["q2/evenflow"][0] == 460.0
    assert not (tmp_path / f"nexmark-{EVENTS}").exists()


def test_a_run_says_how_many_rows_were_compared(answers, tmp_path):
    (check,) = run(tmp_path).checks
    assert check.startswith("q2: evenflow emits the ")
    assert check.endswith(" rows of DuckDB for 2,000 events")


def test_wrong_results_fail_the_run_and_name_the_query(answers, tmp_path):
    answers["writes"] = lambda task, folder: write(task, folder, skipped=1)
    with pytest.raises(BenchmarkError, match="q2: of the rows of evenflow 1 are missing and 0 are wrong"):
        run(tmp_path)


def test_wrong_results_of_flink_are_in_the_report(answers, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "install", lambda folder, say: folder / "python")
    monkeypatch.setattr(running, "write_final_rows", lambda *_: None)
    answers["writes"] = lambda task, folder: (
        write(task, folder) if "input" in task.options else write(task, str(Path(folder).parent), skipped=1)
    )
    ours, theirs = run(tmp_path, "--systems", "evenflow,flink").checks
    assert ours.startswith("q2: evenflow emits the ")
    assert theirs.startswith("q2: of Flink's rows 1 are missing and 0 are wrong. With few events")


def test_targets_are_ratios_of_rates_and_of_processor_time(answers, tmp_path):
    found = run(tmp_path).cases
    theirs = [Case(case.name.replace("evenflow", "flink"), case.unit, case.better, case.values[:1]) for case in found]
    rate, processor = running.verdicts([*found, *theirs])
    assert rate.measured == pytest.approx(575 / 460)
    assert processor.measured == pytest.approx(1.0)


def test_the_geometric_mean_is_judged_once_all_queries_of_flink_are_measured():
    names = [name for name in QUERIES if name not in NOT_IN_FLINK]
    cases = [
        Case(f"{name}/{system}{part}", "rows/s", "higher", (rate,))
        for place, name in enumerate(names)
        for part in ("", ", processor")
        for system, rate in (("evenflow", 8.0 if place % 2 else 2.0), ("flink", 1.0))
    ]
    mean = running.verdicts(cases)[-1]
    assert mean.claim == "rows/s of evenflow / of Flink, geometric mean of all queries"
    assert mean.measured == pytest.approx(2.0 * 4.0 ** ((len(names) // 2) / len(names)))
    assert not mean.met
    assert all("geometric" not in verdict.claim for verdict in running.verdicts(cases[4:]))


def test_flink_is_refused_other_files_than_csv_before_data_is_written(tmp_path):
    with pytest.raises(BenchmarkError, match="Flink reads NexMark's CSV files only"):
        run(tmp_path, "--systems", "evenflow,flink", "--from", "parquet")
    assert not list(tmp_path.iterdir())


def test_flink_that_can_t_be_installed_ends_the_run_before_data_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(flink_environment.sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(BenchmarkError, match=r"Flink 2\.3\.0 can't be installed.*no-python -m venv"):
        run(tmp_path, "--systems", "flink")
    assert not list(tmp_path.iterdir())


def test_flink_is_installed_once(tmp_path):
    home = tmp_path / f"flink-{flink_environment.VERSION}"
    home.mkdir()
    (home / "complete").touch()
    assert flink_environment.install(tmp_path, print) == home / "bin" / "python"


def test_every_query_is_in_flink_or_has_a_reason():
    assert set(IN_FLINK).isdisjoint(NOT_IN_FLINK)
    assert set(IN_FLINK) | set(NOT_IN_FLINK) == set(QUERIES)


def test_flink_s_tables_are_json():
    assert json.loads(json.dumps(TABLES)) == list(TABLES)
    assert all("FOLDER/" in table for table in TABLES)
