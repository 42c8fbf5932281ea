from __future__ import annotations

import pytest

from evenflow.bench.harness.record import Case, Run, Verdict
from evenflow.engine.errors import ConnectorError

RUN = Run(
    "latency", "2026-01-01T00:00:00+00:00", {"cores": 2}, {"ray": "2.50"}, "abc", {"rates": [1]},
    (Case("1/p50", "ms", "lower", (1.5,), ({"busy_before": 0.0},)),),
    (Verdict("p50", 1.5, 3.0, "lower"),),
    not_measured=("other systems",),
    series={"1": [[0, 1.0, 2.0]]},
)  # fmt: skip


def test_a_run_survives_json():
    assert Run.from_json(RUN.to_json()) == RUN


def test_a_case_is_found_by_name():
    assert RUN.case("1/p50") is RUN.cases[0]
    assert RUN.case("1/p99") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cases": []}', '{"cases": [{"name": 1}]}'])
def test_a_file_that_is_no_run_is_named(tmp_path, text):
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(ConnectorError, match=r"run\.json is not the JSON of a benchmark run"):
        Run.read(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConnectorError, match=r"none\.json"):
        Run.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("measured", "better", "met"),
    [(10.0, "higher", True), (9.9, "higher", False), (10.0, "lower", True), (10.1, "lower", False)],
)
def test_a_target_is_met_when_it_is_reached(measured, better, met):
    assert Verdict("x", measured, 10.0, better).met is met
