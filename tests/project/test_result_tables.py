"""The tables of measured numbers are those of the stored runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from evenflow.bench.harness.record import Case, Run

ROOT = Path(__file__).parents[2]
MACHINE = {"processor": "EPYC", "cores": 2, "memory_gib": 23.5}


@pytest.fixture(scope="module")
def results():
    spec = importlib.util.spec_from_file_location("results", ROOT / ".ci" / "results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(benchmark, busy=0.0, **values):
    cases = tuple(Case(name, "", "higher", (value,)) for name, value in values.items())
    return Run(benchmark, "2026-11-28T16:03:40+00:00", MACHINE, {}, "0123456789ab", {}, cases, busy=busy)


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md"])
def test_pages_have_the_tables_of_the_stored_runs(results, page):
    text = (ROOT / page).read_text()
    assert results.filled(text, results.stored()) == text


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        (
            "throughput",
            {"t1/evenflow": 28.9e6, "t1/spark": 3.1e6, "t2/evenflow": 2.3e6, "t2/bytewax": 0.25e6},
            ["| million rows/s | evenflow | spark | bytewax |", "|---|---|---|---|", "| t1 | 28.9 | 3.1 |  |", "| t2 | 2.3 |  | 0.25 |"],
        ),
        (
            "latency",
            {"200000/evenflow/p50": 1.7, "200000/evenflow/p99": 3.7, "200000/evenflow/p99.9": 7.0, "50000/evenflow/p50": 1.0},
            ["| rows/s; p50, p99, p99.9 in ms | evenflow |", "|---|---|", "| 200000 | 1.7, 3.7, 7 |"],
        ),
        (
            "migration",
            {"lazy/steady p99": 24.0, "lazy/p99 while it moves": 262.0, "lazy/largest": 300.0, "restart/largest": 6700.0},
            [
                "| strategy | p99 before, ms | p99 meanwhile, ms | largest, ms | takes, s |",
                "|---|---|---|---|---|",
                "| lazy | 24 | 262 | 300 |  |",
                "| restart |  |  | 6.7 k |  |",
            ],
        ),
        (
            "nexmark-moves",
            {
                "q5, batched/steady p99": 10.0,
                "q5, batched/p99 meanwhile": 15.0,
                "q5, restart/steady p99": 10.0,
                "q5, restart/p99 meanwhile": 620.0,
            },
            ["| p99 meanwhile / steady | batched | restart |", "|---|---|---|", "| q5 | 1.5 | 62 |"],
        ),
        (
            "recovery",
            {"Spark/first output": 13.1, "Spark/new output": 15.0, "Spark/session up": 9.0},
            ["| killed | first output, s | new output, s |", "|---|---|---|", "| Spark | 13.1 | 15 |"],
        ),
        (
            "nexmark",
            {
                "q0/evenflow": 5.09e6,
                "q0/flink": 1.71e6,
                "q0/flink, processor": 1.0,
                "q1/evenflow": 4e6,
                "q1/flink": 2e6,
                "q2/evenflow": 3e6,
                "q2/flink": 1e6,
                "q6/evenflow": 0.84e6,
            },
            [
                "| query | evenflow, Flink | ratio | query | evenflow, Flink | ratio |",
                "|---|---|---|---|---|---|",
                "| q0 | 5.09, 1.71 | 3.0 | q2 | 3, 1 | 3.0 |",
                "| q1 | 4, 2 | 2.0 |  |  |  |",
            ],
        ),
    ],
)
def test_each_table_has_the_medians_of_its_run(results, name, values, expected):
    assert results.TABLES[name](run(name, **values)).splitlines() == expected


def test_table_is_put_between_its_marks_with_its_origin(results):
    page = "a\n<!-- results: recovery -->\nold\n<!-- end -->\nb\n"
    filled = results.filled(page, {"recovery": run("recovery", busy=0.3, **{"Spark/new output": 15.0})})
    assert filled.startswith("a\n<!-- results: recovery -->\n| killed |")
    assert "\n\n`evenflow bench run recovery`, commit 0123456789ab, EPYC, 2 cores, 23.5 GiB, 2026-11-28; other programs used " in filled
    assert filled.endswith("up to 30% of the machine.\n<!-- end -->\nb\n")
    assert "old" not in filled


def test_stored_run_has_no_curves(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    (tmp_path / "recovery-2026.json").write_text(run("recovery").to_json().replace('"series": {}', '"series": {"a": [1, 2]}'))
    results.add(tmp_path / "recovery-2026.json")
    assert results.stored()["recovery"].series == {}
