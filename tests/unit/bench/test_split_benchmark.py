"""What the benchmark of split keys reports of what it has measured."""

from __future__ import annotations

import pytest

from evenflow.bench.split import CASES, Measured, cases_of, verdicts

FOUND = {"split": (20_000.0, 1.05), "whole keys": (12_500.0, 1.6), "off": (9_000.0, 2.1)}


def test_split_is_judged_beside_whole_keys():
    assert set(FOUND) == set(CASES)
    cases = [case for name, (rate, imbalance) in FOUND.items() for case in cases_of(name, [Measured(rate, imbalance, 1.5, 1)] * 3, [])]
    gain, even = verdicts(cases)
    assert (gain.measured, even.measured) == pytest.approx((1.6, 1.05))
    assert gain.met
    assert even.met
