from __future__ import annotations

import pytest

from evenflow.bench.overhead import certainty, costs_percent


def test_cost_is_what_a_pair_takes_more():
    assert costs_percent([1.1, 0.9, 1.0], [1.0, 1.0, 1.0]) == [10.0, -10.0, 0.0]


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        pytest.param([1.6, 1.7, 1.8, 2.1, 2.4] * 5, "so the run decides", id="narrow, around the limit"),
        pytest.param([-4.0, -3.0, 1.0, 1.4, 1.9] * 5, "so the run decides", id="wide, below the limit"),
        pytest.param([-40.0, -20.0, 1.0, 30.0, 50.0] * 5, "does not decide", id="pairs that disagree"),
        pytest.param([1.0, 1.5, 1.6, 1.7, 90.0], "does not decide", id="too few"),
        pytest.param([1.0, 1.5, 1.6, 1.7, 1.8] * 5 + [90.0], "so the run decides", id="one pair that was disturbed"),
    ],
)
def test_a_run_decides_if_the_interval_of_the_median_is_narrow_or_on_one_side_of_the_limit(costs, said):
    assert said in certainty(costs)
