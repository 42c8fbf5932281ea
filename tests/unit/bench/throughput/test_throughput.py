from __future__ import annotations

import pytest

from evenflow.bench.harness.errors import BenchmarkError
from evenflow.bench.harness.record import Case, ratio_verdicts
from evenflow.bench.harness.task import Answer, Task, check_results
from evenflow.bench.throughput.loop import loop
from evenflow.bench.throughput.run import SYSTEMS, SYSTEMS_OF, TARGETS


def test_every_target_is_about_cases_that_are_run():
    cases = {f"{task}/{system}" for task, systems in SYSTEMS_OF.items() for system in systems}
    assert {name for ours, theirs, *_ in TARGETS for name in (ours, theirs)} <= cases
    assert {system for systems in SYSTEMS_OF.values() for system in systems} == set(SYSTEMS)


def test_verdicts_are_ratios_of_medians_where_both_sides_ran():
    cases = [Case("t1/evenflow", "rows/s", "higher", (20.0, 30.0, 25.0)), Case("t1/spark", "rows/s", "higher", (2.5,))]
    (verdict,) = ratio_verdicts(cases, TARGETS)
    assert verdict.measured == 10.0
    assert not verdict.met


def test_systems_that_disagree_are_named():
    with pytest.raises(BenchmarkError, match=r"benchmark t1: duckdb gives \{'rows': 2\}, evenflow gives \{'rows': 1\}"):
        check_results("t1", {"evenflow": {"rows": 1}, "duckdb": {"rows": 2}})


def test_equal_results_are_described_if_there_are_several():
    assert check_results("t1", {"evenflow": {"rows": 1200}, "duckdb": {"rows": 1200}}) == [
        "t1: evenflow, duckdb have the same result: rows 1,200"
    ]
    assert check_results("t1", {"evenflow": {"rows": 1}}) == []


def test_task_and_answer_survive_json():
    task, answer = Task("t1", "data", 10, 1000, "out", 3, {"runtime": "ray"}), Answer(2.0, 10, {"rows": 1.0})
    assert Task.from_json(task.to_json()) == task
    assert Answer.from_json(answer.to_json()) == answer
    assert answer.rate == 5.0


def test_an_alert_is_a_value_far_above_the_running_mean_of_its_key():
    columns = {"key": [1, 2, 1, 1, 1, 1], "ts": [0] * 6, "value": [1.0, 9.0, 1.0, 1.0, 1.0, 20.0]}
    assert loop(columns) == [{"key": 1, "value": 20.0, "mean": 4.8}]
