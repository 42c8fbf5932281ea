from __future__ import annotations

import pytest

from evenflow.bench.overhead import certainty, costs_percent


def test_cost_is_what_a_pair_takes_more():
    assert costs_percent([1.1, 0.9, 1.0], [1.0, 1.0, 1.0]) == [10.0, -10.0, 0.0]


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        pytest.param([1.0, 1.5, 2.0, 2.5, 3.0], "so the run decides", id="pairs that agree"),
        pytest.param([-40.0, -20.0, 1.0, 30.0, 50.0], "does not decide", id="pairs that don't"),
        pytest.param([1.0, 1.5, 2.0, 2.5, 90.0], "so the run decides", id="one pair that was disturbed"),
    ],
)
def test_a_run_decides_only_if_its_pairs_agree(costs, said):
    assert said in certainty(costs)
