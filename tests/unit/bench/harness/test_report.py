from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.bench.harness.comparison import compare_case
from evenflow.bench.harness.record import Case, Run, Verdict
from evenflow.bench.harness.report import case_row, difference_row, markdown, number, verdict_row

RUN = Run(
    "throughput", "2026-01-01T00:00:00+00:00", {"cores": 2}, {"ray": "2.50"}, "abc", {"rows": 10},
    (Case("t1/evenflow", "rows/s", "higher", (9e6, 1e7, 1.1e7)),),
    (Verdict("T1", 0.3, 0.4, "higher"),),
    ("t1: all came to the same",),
    ("more than two cores",),
)  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "# throughput, 2026-01-01T00:00:00+00:00, commit abc",
        "| t1/evenflow | 10 M rows/s | 20% | 9 M, 10 M, 11 M |",
        "| T1 | >= 0.4 | 0.3 | missed |",
        "- t1: all came to the same",
        "Machine: cores 2.",
        "Versions: ray 2.50.",
        "Arguments: rows=10.",
        "- more than two cores",
    ],
)
def test_report_has_what_a_reader_needs_to_trust_it(line):
    assert line in markdown(RUN).splitlines()


def test_many_iterations_are_counted():
    assert case_row(Case("rss", "MiB", "lower", (5.0,) * 100)) == ("rss", "5 MiB", "0%", "100 values, in the JSON")


def test_a_lower_target_is_met_by_less():
    assert verdict_row(Verdict("p99", 14.0, 15.0, "lower"), RUN) == ("p99", "<= 15", "14", "met")


def test_every_verdict_says_if_the_machine_was_busy():
    busy = replace(RUN, busy=0.4)
    assert verdict_row(RUN.verdicts[0], busy)[-1] == "missed, disturbed"
    assert "- other programs used up to 40% of the machine: repeat it alone before believing it" in markdown(busy).splitlines()


def test_comparison_states_the_noise():
    row = difference_row(compare_case(RUN.cases[0], Case("t1/evenflow", "rows/s", "higher", (2e7,))))
    assert row == ("t1/evenflow", "10 M rows/s", "20 M rows/s", "2.00 (noise ±20%)", "better")


@given(st.floats(1e-3, 1e12))
def test_numbers_keep_three_digits(value):
    text, _, suffix = number(value).partition(" ")
    assert float(text) * {"": 1.0, "k": 1e3, "M": 1e6}[suffix] == pytest.approx(value, rel=5e-3)
