from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from evenflow.bench.errors import BenchmarkError
from evenflow.bench.nexmark import run as running
from evenflow.bench.nexmark.data import EventFiles
from evenflow.bench.nexmark.flink_sql import NOT_IN_FLINK, TABLES
from evenflow.bench.nexmark.flink_sql import QUERIES as IN_FLINK
from evenflow.bench.nexmark.oracles import ORACLES
from evenflow.bench.nexmark.queries import QUERIES
from evenflow.bench.nexmark.spark_sql import NOT_IN_SPARK
from evenflow.bench.nexmark.spark_sql import QUERIES as IN_SPARK
from evenflow.bench.operators import FLINK
from evenflow.bench.plots import plot
from evenflow.bench.record import Case
from evenflow.bench.task import Answer

EVENTS = 5_000


def right(task, folder):
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW bid AS SELECT * FROM read_parquet('{folder}/parquet/bid/*.parquet')")
        Path(task.output).mkdir(parents=True)
        database.execute(f"COPY ({ORACLES[task.name]}) TO '{task.output}/rows.parquet'")


def one_row_less(task, folder):
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW bid AS SELECT * FROM read_parquet('{folder}/parquet/bid/*.parquet')")
        Path(task.output).mkdir(parents=True)
        database.execute(f"COPY (SELECT * FROM ({ORACLES[task.name]}) OFFSET 1) TO '{task.output}/rows.parquet'")


@pytest.fixture
def answers(monkeypatch):
    """Systems that answer at once, two seconds faster in every iteration, and write what `answers` says."""
    tasks = []
    given = {"writes": right, "tasks": tasks}

    def answer(system, task, timeout):
        tasks.append((system, task))
        given["writes"](task, task.options["checked"])
        held = {"state_bytes": 1_000} if system == "nexmark_evenflow" else {}
        return [Answer(10.0 - 2 * number, task.rows, {}, {"cpu_seconds": 4.6, **held}) for number in range(task.repeat)]

    monkeypatch.setattr(running, "run_system", answer)
    monkeypatch.setattr(running.machine, "busy_share", lambda: 0.0)
    monkeypatch.setattr(running.machine, "commit", lambda: "0123456789ab")
    return given


def run(tmp_path, **options):
    asked = {"queries": ["q2"], "systems": ["evenflow"], "events": EVENTS, "checked_events": 2_000, "form": "csv", "repeat": 3}
    return running.run(**{**asked, **options}, cache=tmp_path, say=lambda _: None)


def test_rates_and_processor_time_are_of_the_rows_that_the_query_reads(answers, tmp_path):
    found = run(tmp_path)
    assert found.case("q2/evenflow").values == (460.0, 575.0, pytest.approx(766.7, abs=0.1))
    assert found.case("q2/evenflow, processor").values == pytest.approx((1000.0,) * 3)
    assert found.case("q2/evenflow, state").values == (1_000,) * 3
    ((system, task),) = answers["tasks"]
    assert (system, task.rows, task.options["input"]) == ("nexmark_evenflow", 4_600, "csv")
    assert EventFiles(Path(task.folder), EVENTS).of("csv", "bid").is_dir()


def test_rates_of_all_systems_are_drawn_by_query(answers, tmp_path):
    ours = run(tmp_path).cases
    theirs = Case("q0/spark", "rows/s", "higher", (1e6,))
    assert plot(running.record("nexmark", {}, [*ours, theirs], []), tmp_path / "queries.png")
    assert (tmp_path / "queries.png").read_bytes().startswith(b"\x89PNG")


def test_events_that_the_job_generates_are_in_no_files(answers, tmp_path):
    assert run(tmp_path, form="generate").case("q2/evenflow").values[0] == 460.0
    assert not (tmp_path / f"nexmark-{EVENTS}").exists()


def test_a_run_says_how_many_rows_were_compared(answers, tmp_path):
    (check,) = run(tmp_path).checks
    assert check.startswith("q2: evenflow gave the ")
    assert check.endswith(" rows that DuckDB gives for 2,000 events")


def test_wrong_results_fail_the_run_and_name_the_query(answers, tmp_path):
    answers["writes"] = one_row_less
    with pytest.raises(BenchmarkError, match="q2: of evenflow's rows 1 are missing and 0 are wrong"):
        run(tmp_path)


def test_wrong_results_of_flink_are_in_the_report(answers, tmp_path, monkeypatch):
    monkeypatch.setenv(FLINK, "python")
    monkeypatch.setattr(running, "write_final_rows", lambda *_: None)
    answers["writes"] = lambda task, folder: (
        right(task, folder) if "input" in task.options else one_row_less(task, str(Path(folder).parent))
    )
    ours, theirs = run(tmp_path, systems=["evenflow", "flink"]).checks
    assert ours.startswith("q2: evenflow gave the ")
    assert theirs.startswith("q2: of Flink's rows 1 are missing and 0 are wrong. With few events")


def test_targets_are_ratios_of_rates_and_of_processor_time(answers, tmp_path):
    found = run(tmp_path)
    theirs = [running.Case(case.name.replace("evenflow", "flink"), case.unit, case.better, case.values[:1]) for case in found.cases]
    rate, processor = running._verdicts([*found.cases, *theirs])
    assert rate.measured == pytest.approx(575 / 460)
    assert processor.measured == pytest.approx(1.0)


def test_the_geometric_mean_is_judged_once_all_queries_of_flink_are_measured():
    names = [name for name in QUERIES if name not in NOT_IN_FLINK]
    cases = [
        running.Case(f"{name}/{system}{part}", "rows/s", "higher", (rate,))
        for place, name in enumerate(names)
        for part in ("", ", processor")
        for system, rate in (("evenflow", 8.0 if place % 2 else 2.0), ("flink", 1.0))
    ]
    mean = running._verdicts(cases)[-1]
    assert mean.claim == "rows/s of evenflow / of Flink, geometric mean of all queries"
    assert mean.measured == pytest.approx(2.0 * 4.0 ** ((len(names) // 2) / len(names)))
    assert not mean.met
    assert all("geometric" not in verdict.claim for verdict in running._verdicts(cases[4:]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": ["q0", "q99"]}, "query 'q99' is unknown; there are: q0, q1"),
        ({"form": "xml"}, "input 'xml' is unknown"),
        ({"systems": ["evenflow", "spark"], "form": "parquet"}, "Flink and Spark read NexMark's CSV files only"),
        ({"systems": ["storm"]}, "system 'storm' is unknown"),
        ({"systems": ["flink"]}, f"set {FLINK} to its interpreter"),
    ],
)
def test_what_can_not_be_run_is_refused_before_anything_is_made(options, message, tmp_path, monkeypatch):
    monkeypatch.delenv(FLINK, raising=False)
    with pytest.raises(BenchmarkError, match=message):
        run(tmp_path, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("said", "why_not"), [(IN_FLINK, NOT_IN_FLINK), (IN_SPARK, NOT_IN_SPARK)], ids=["flink", "spark"])
def test_every_query_is_in_the_other_system_or_it_says_why_not(said, why_not):
    assert set(said).isdisjoint(why_not)
    assert set(said) | set(why_not) == set(QUERIES)


def test_rows_that_spark_does_not_give_are_in_the_report(answers, tmp_path):
    answers["writes"] = lambda task, folder: one_row_less(task, str(Path(folder).parent))
    (check,) = run(tmp_path, systems=["spark"], queries=["q7"]).checks
    assert check == "q7: of Spark's rows 1 are missing and 0 are wrong. It doesn't give the windows that are open when the input ends."


def test_a_query_that_a_system_can_not_say_is_left_out(answers, tmp_path):
    assert run(tmp_path, systems=["spark"], queries=["q6"]).cases == ()


def test_what_flink_is_given_is_json():
    assert json.loads(json.dumps(TABLES)) == list(TABLES)
    assert all("FOLDER/" in table for table in TABLES)
