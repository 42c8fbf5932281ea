"""An operator's figures are the sums of its instances', and are refused where they can't be."""

from __future__ import annotations

import math

import pytest

from evenflow.engine.errors import SnapshotError
from evenflow.scheduler.policies.dataflow.figures import InstanceFigures, OperatorFigures


def test_rates_are_summed_over_the_instances():
    instances = [InstanceFigures(600, 1200, 300, 600, 5, 0.25), InstanceFigures(400, 800, 400, 800, 0, 0.0)]
    count = OperatorFigures.summed("count", instances)
    assert (count.parallelism, count.true_processing_rate, count.true_output_rate) == (2, 1000, 2000)
    assert (count.observed_processing_rate, count.observed_output_rate) == (700, 1400)
    assert (count.queue_records, count.backpressure) == (5, 0.25)


def test_an_idle_instance_counts_as_the_mean_of_the_others():
    count = OperatorFigures.summed(
        "count", [InstanceFigures(600, observed_processing_rate=300), InstanceFigures(None, observed_processing_rate=0)]
    )
    assert (count.true_processing_rate, count.observed_processing_rate) == (1200, 300)


def test_figures_of_the_operator_count_more_than_the_sum():
    assert OperatorFigures.summed("count", [InstanceFigures(600)], true_processing_rate=550).true_processing_rate == 550


def test_unknown_rates_stay_unknown():
    assert OperatorFigures.summed("count", [InstanceFigures(), InstanceFigures()]).true_processing_rate is None


def test_utilisation_is_what_is_processed_over_what_could_be():
    assert InstanceFigures(200, observed_processing_rate=50).utilisation == 0.25
    assert InstanceFigures(0, observed_processing_rate=0).utilisation == 0.0
    assert InstanceFigures(200).utilisation is None


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"parallelism": 0}, "operator `count`: parallelism is 0: it must be a whole number, 1 or more"),
        ({"parallelism": 1.5}, "parallelism is 1.5"),
        ({"parallelism": True}, "parallelism is True"),
        ({"true_processing_rate": -1}, "operator `count`: true_processing_rate is -1: it must be a finite number, 0 or more"),
        ({"observed_output_rate": math.nan}, "observed_output_rate is nan"),
        ({"source_rate": math.inf}, "source_rate is inf"),
        ({"source_rate": "fast"}, "source_rate is 'fast'"),
        ({"queue_records": -3}, "queue_records is -3"),
        ({"backpressure": 1.5}, "backpressure is 1.5: it must be a finite number, 0 or more and at most 1"),
        ({"backlog_growth": math.nan}, "backlog_growth is nan: it must be a finite number"),
        ({"hottest_key_share": 2}, "hottest_key_share is 2"),
        ({"kind": "magic"}, "kind is 'magic': it must be one of continuous, window, join"),
        ({"nodes": ("a", "b")}, "nodes has 2 entries, parallelism is 1: one for each instance"),
        ({"instances": (InstanceFigures(), InstanceFigures())}, "instances has 2 entries, parallelism is 1"),
        ({"key_groups": 0}, "key_groups is 0"),
        ({"name": ""}, "operators: name is ''"),
    ],
)
def test_impossible_figures_are_refused_with_operator_and_field(figures, message):
    with pytest.raises(SnapshotError) as error:
        OperatorFigures(**{"name": "count", "parallelism": 1, **figures})
    assert message in str(error.value)


def test_an_instance_is_checked_too():
    with pytest.raises(SnapshotError, match="instances: true_processing_rate is -1"):
        InstanceFigures(-1)
