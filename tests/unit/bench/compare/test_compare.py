"""The README's numbers: their table, and the benchmarks that they come from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenflow.bench.compare import run as comparing
from evenflow.bench.compare.numbers import numbers, numbers_table
from evenflow.bench.harness.record import Case, Findings, Verdict
from evenflow.bench.nexmark import moves
from evenflow.bench.recovery.run import KINDS

CASES = {
    "t1/evenflow": 28.9e6,
    "t1/spark": 3.1e6,
    "t1/duckdb": 52e6,
    "t2/evenflow": 2.3e6,
    "t2/bytewax": 0.25e6,
    "t2/loop": 3.7e6,
    "q1/evenflow": 5e6,
    "q1/flink": 1e6,
    "q1/flink, processor": 7.0,
    "q5/evenflow": 4e6,
    "q5/flink": 0.2e6,
    "q5, 2 to 3 workers/steady p99": 10.0,
    "q5, 2 to 3 workers/p99 meanwhile": 11.0,
    "q5, restart/steady p99": 10.0,
    "q5, restart/p99 meanwhile": 620.0,
    "evenflow, new process/new output": 3.11,
    "evenflow, warm spare/new output": 2.0,
    "Spark/new output": 15.04,
}


def cases(found):
    return [Case(name, "", "higher", (value,)) for name, value in found.items()]


def test_each_number_is_a_row_next_to_those_of_other_systems():
    assert [(row.evenflow, row.others) for row in numbers(cases(CASES))] == [
        ("28.9 M rows/s", "Spark 3.1; DuckDB, as a batch query, 52"),
        ("2.3 M rows/s", "Bytewax 0.25; a plain loop 3.7"),
        ("4 to 5 M rows/s", "Flink SQL 0.2 to 1; geometric mean of the ratios 10.0"),
        ("1.1 times the steady p99", "savepoint and restart: 62 times"),
        ("2.0 s; 3.1 s without a warm spare", "Spark 15.0 s"),
    ]


@pytest.mark.parametrize("lost", ["t1/duckdb", "t2/loop", "q5, restart/p99 meanwhile", "Spark/new output"])
def test_a_number_without_its_competitor_is_no_row(lost):
    rest = {name: value for name, value in CASES.items() if name != lost}
    assert len(numbers_table(cases(rest)).splitlines()) == 2 + 4


def test_a_query_without_flink_is_not_in_the_mean():
    rest = {name: value for name, value in CASES.items() if name != "q1/flink"}
    assert "20.0" in numbers(cases(rest))[2].others


def test_the_cases_of_the_benchmarks_are_those_that_the_numbers_need():
    changes = {"restart": moves.Change(1, 2, 3, 4, 5, [], 0), moves.SCALE: moves.Change(1, 2, 3, 4, 5, [], 0)}
    made = {case.name for name, change in changes.items() for case in moves.cases_of(f"q5, {name}", change)}
    assert {name for name in CASES if name.startswith("q5, ")} <= made
    assert {"new process", "warm spare"} <= set(KINDS)


@pytest.mark.parametrize("part", comparing.PARTS.values(), ids=list(comparing.PARTS))
def test_the_command_of_each_part_is_one_of_its_benchmark(part, tmp_path, monkeypatch):
    made, begun = [], []
    monkeypatch.setattr(comparing, "make", lambda folder, rows: made.append(rows))
    benchmark = replace(part.benchmark, run=lambda given, say: begun.append(given) or Findings([]))
    replace(part, benchmark=benchmark).run(comparing.BENCHMARK.parse(["--rows", "7", "--folder", str(tmp_path)]), print)
    assert made == ([7] if part.rows else [])
    assert len(begun) == 1


def test_the_report_has_the_numbers_and_no_verdicts(monkeypatch):
    said = []
    found = Findings(cases(CASES), [Verdict("T1", 1.0, 2.0, "higher")], ["all rows are equal"])
    fake = replace(comparing.PARTS["recovery"].benchmark, run=lambda given, say: found)
    monkeypatch.setattr(comparing, "PARTS", {"recovery": replace(comparing.PARTS["recovery"], benchmark=fake)})
    run = comparing.run(comparing.BENCHMARK.parse(["--parts", "recovery"]), said.append)
    assert not run.verdicts
    assert run.checks[0] == "all rows are equal"
    assert len(run.checks) == 1 + 5
    assert "recovery_seconds" in run.facts
    assert said == ["part 1 of 1: recovery"]
