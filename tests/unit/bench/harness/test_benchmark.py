"""The declaration of benchmarks, and the registry."""

from __future__ import annotations

import json

import pytest

from evenflow.bench.harness import machine
from evenflow.bench.harness.benchmark import Argument, Benchmark, some_of
from evenflow.bench.harness.record import Case, Findings
from evenflow.bench.registry import BENCHMARKS
from evenflow.cli import main

NAMES = Argument("--the-names", some_of(["a", "b"]), ["a"], "names", "names")
ECHO = Benchmark(
    "echo",
    "repeats its names",
    (NAMES,),
    lambda given, say: Findings([Case(name, "s", "lower", (1.0,), ({"busy_before": 0.2},)) for name in given.names], facts={"rate": 7}),
    ("silence",),
)


def test_a_run_has_the_arguments_and_facts_and_the_load_by_others(monkeypatch):
    monkeypatch.setattr(machine, "commit", lambda: "0123456789ab")
    run = ECHO.measure(ECHO.parse(["--the-names", "b,a"]), print)
    assert (run.benchmark, run.arguments, run.busy) == ("echo", {"names": ["b", "a"], "rate": 7}, 0.2)
    assert [case.name for case in run.cases] == ["b", "a"]
    assert run.not_measured == ("silence",)


def test_an_unknown_name_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        ECHO.parse(["--the-names", "a,c"])
    assert "'c' is unknown; choose from a, b" in capsys.readouterr().err


@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=lambda benchmark: benchmark.name)
def test_every_benchmark_parses_its_defaults_and_records_them(benchmark):
    given = benchmark.parse([])
    arguments = {argument.attribute: getattr(given, argument.attribute) for argument in benchmark.arguments}
    assert arguments == {argument.attribute: argument.default for argument in benchmark.arguments}
    assert json.loads(json.dumps(arguments, default=str)).keys() == arguments.keys()


def test_help_names_every_benchmark(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "run", "--help"])
    shown = capsys.readouterr().out
    assert all(f"\n    {name}" in shown for name in BENCHMARKS)
