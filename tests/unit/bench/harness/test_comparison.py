from __future__ import annotations

import pytest

from evenflow.bench.harness.comparison import compare, compare_case, other_conditions
from evenflow.bench.harness.errors import BenchmarkError
from evenflow.bench.harness.record import Case, Run

pytestmark = pytest.mark.first


def case(*values, name="t1/evenflow", better="higher"):
    return Case(name, "rows/s" if better == "higher" else "ms", better, values)


def run(*cases, benchmark="throughput", **changes):
    fields = {"machine": {"cores": 2}, "versions": {"ray": "1"}, "arguments": {"rows": 10}, **changes}
    return Run(benchmark, "2026-01-01T00:00:00+00:00", commit="abc", cases=cases, **fields)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        pytest.param(case(100.0, 101.0), case(120.0, 121.0), "better", id="a higher rate is better"),
        pytest.param(case(100.0, 101.0), case(80.0, 81.0), "worse", id="a lower rate is worse"),
        pytest.param(case(5.0, better="lower"), case(4.0, better="lower"), "better", id="a lower latency is better"),
        pytest.param(case(5.0, better="lower"), case(6.0, better="lower"), "worse", id="a higher latency is worse"),
        pytest.param(case(100.0), case(102.0), "noise", id="a small difference is noise"),
        pytest.param(case(80.0, 100.0, 120.0), case(120.0, 121.0), "noise", id="within the spread it is noise"),
    ],
)
def test_difference_is_judged_by_direction_and_noise(before, after, verdict):
    assert compare_case(before, after).verdict == verdict


def test_only_cases_of_both_runs_are_compared():
    a, b = run(case(1.0, name="a"), case(1.0, name="b")), run(case(1.0, name="b"), case(1.0, name="c"))
    assert [difference.name for difference in compare(a, b)] == ["b"]


def test_runs_of_different_benchmarks_are_refused():
    with pytest.raises(BenchmarkError, match="`throughput` and `latency` are different benchmarks"):
        compare(run(case(1.0)), run(case(1.0), benchmark="latency"))


def test_runs_without_a_common_case_are_refused():
    with pytest.raises(BenchmarkError, match="no case in common"):
        compare(run(case(1.0, name="a")), run(case(1.0, name="b")))


def test_other_differences_are_named():
    changed = run(case(1.0), machine={"cores": 4}, versions={"ray": "2"}, arguments={"rows": 20})
    assert other_conditions(run(case(1.0)), changed) == [
        "machine: cores 2 and 4",
        "version of ray: 1 and 2",
        "argument rows: 10 and 20",
    ]


def test_ratio_from_zero_is_infinite():
    assert compare_case(case(0.0), case(1.0)).ratio == float("inf")
