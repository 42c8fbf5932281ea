"""Every fault that is planted in how hot keys are split by themselves shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_splitting as faults
import flows_zipf as flows
import pytest
from judging import exact_by_measured_load, only_left_is_dealt
from planting import Runs, assert_found

PLANTED = [
    (faults.side_that_must_not_be_dealt_is_dealt, Runs(flows.left, 50, judge=exact_by_measured_load(flows.left))),
    (faults.records_of_one_side_count_for_the_other, Runs(flows.inner, 50, judge=exact_by_measured_load(flows.inner, only_left_is_dealt))),
    (faults.keys_are_split_while_others_move, Runs(flows.inner, 50, judge=exact_by_measured_load(flows.inner))),
    (faults.upstream_deals_rows_of_a_gathered_key_on, Runs(flows.inner, 100, judge=exact_by_measured_load(flows.inner), begin=54)),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
