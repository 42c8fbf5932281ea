from __future__ import annotations

import pytest

from evenflow.bench.scaling.model import LENGTH, demand_at, latency_p99, optimum, simulate, verdicts
from evenflow.testing.load_model.closed_loop import LoopSample


@pytest.mark.parametrize(
    ("demand", "overhead", "workers"),
    [(240.0, 0.0, {"flat_map": 3, "count": 5}), (480.0, 0.0, {"flat_map": 5, "count": 10}), (480.0, 0.02, {"flat_map": 6, "count": 12})],
)
def test_the_optimum_is_the_fewest_workers_that_are_enough(demand, overhead, workers):
    assert optimum(demand, overhead) == workers


def test_demand_doubles_and_halves():
    assert [demand_at(time) for time in (0.0, LENGTH, 2 * LENGTH - 1, 2 * LENGTH, 3 * LENGTH)] == [240.0, 480.0, 480.0, 240.0, 240.0]


def test_ds2_meets_its_targets_in_model_time():
    found = verdicts({("ds2", overhead): simulate("ds2", overhead) for overhead in (0.0, 0.02)})
    assert len(found) == 4
    assert all(verdict.met for verdict in found)


def test_latency_ends_when_as_many_records_are_counted_as_had_arrived():
    came, counted = [10.0, 20.0, 30.0, 30.0, 30.0], [0.0, 0.0, 10.0, 20.0, 30.0]
    samples = tuple(
        LoopSample(float(t), {}, 0.0, {"source": a, "count": 20 * b}) for t, (a, b) in enumerate(zip(came, counted, strict=True), 1)
    )
    assert latency_p99(samples) == pytest.approx(2000.0)


def test_records_that_are_never_counted_wait_until_the_end():
    samples = tuple(LoopSample(float(t), {}, 0.0, {"source": 10.0 * t, "count": 0.0}) for t in range(1, 6))
    assert latency_p99(samples) == pytest.approx(4000.0)
