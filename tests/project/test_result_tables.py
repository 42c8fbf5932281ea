"""The tables of measured numbers are those of the stored runs."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
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


def test_pages_have_the_tables_of_the_stored_runs(results):
    runs, shown = results.stored(), set()
    for page in results.PAGES:
        text = page.read_text()
        assert results.filled(text, runs) == text, page
        shown |= {found[2] for found in results.PLACE.finditer(text)}
    assert shown == set(runs)


def test_the_command_has_the_options_that_are_not_as_by_default(results):
    found = replace(run("recovery"), arguments={"parts": ["checkpoints"], "keys": [1_000_000, 10_000_000], "repeat": 2})
    assert results.command(found) == "recovery --parts checkpoints --keys 1000000,10000000"


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
        (
            "checkpoints",
            {
                "1 M keys, 0.1 M changing, full speed/with": 98.0,
                "1 M keys, 0.1 M changing, full speed/without": 100.0,
                "1 M keys, 0.1 M changing, half speed/p99 with": 6.0,
                "1 M keys, 0.1 M changing, half speed/p99 without": 4.0,
                "1 M keys, 0.1 M changing, half speed/checkpoint takes": 0.2,
                "1 M keys, 0.1 M changing, half speed/checkpoint": 2**20,
            },
            [
                "| keys | throughput kept | p99, times | a checkpoint takes, s | state, MiB |",
                "|---|---|---|---|---|",
                "| 1 M | 0.98 | 1.50 | 0.2 | 1 |",
            ],
        ),
        (
            "skew",
            {
                f"{workers} workers, zipf 1, {policy}/{what}": value * workers
                for workers in (1, 2)
                for policy in ("off", "hotspot", "lpt")
                for what, value in (("imbalance / floor", 1.0), ("windows until good", 3.0), ("state moved", 1e6))
            },
            [
                "| balancer | largest mean imbalance / floor | windows until within 5 % | MB moved |",
                "|---|---|---|---|",
                "| `off` | 2.00 |  | 3 |",
                "| `hotspot` | 2.00 | 4.5, at most 6 | 3 |",
                "| `lpt` | 2.00 | 4.5, at most 6 | 3 |",
            ],
        ),
        (
            "kafka",
            {"count/evenflow": 5e5, "count/evenflow, processor": 3.9, "count/bytewax": 6e4, "count/bytewax, processor": 26.0},
            [
                "| count | rows/s | processor seconds per million rows |",
                "|---|---|---|",
                "| `aggregate` | 500 k | 3.9 |",
                "| Bytewax | 60 k | 26 |",
            ],
        ),
    ],
)
def test_each_table_has_the_medians_of_its_run(results, name, values, expected):
    assert results.TABLES[name](run(name, **values)).splitlines() == expected


def test_a_policys_worst_phase_counts(results):
    figures = ("steps", "time to converge", "workers off the optimum", "over-provisioned", "under-provisioned", "oscillations")
    cases = [Case(f"linear, ds2/{name}", "", "lower", (1.0, 2.0)) for name in figures]
    bent = [Case(f"2% overhead, ds2/{name}", "", "lower", (9.0,)) for name in figures]
    lines = results.TABLES["scaling"](replace(run("scaling"), cases=(*cases, *bent))).splitlines()
    assert lines[2:] == ["| `ds2` | 2 | 2 | 2 | 2 | 2 | 2 |"]


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
