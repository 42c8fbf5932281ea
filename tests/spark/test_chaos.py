"""Jobs between Spark and Spark lose processes of every kind every few seconds, and Spark finds every row right."""

from __future__ import annotations

import pytest
from patience import patience

import evenflow as ef
from evenflow.bench.recovery import chaos
from evenflow.testing.chaos.chaos import Chaos

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(600),
]  # a process of Ray's takes from one second to ten to start, by how busy the machine is


def test_killed_workers_coordinators_and_queries_change_nothing_in_what_spark_reads(cluster, spark, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(chaos, "END_SECONDS", patience(chaos.END_SECONDS))
    outcome = chaos.run(spark, tmp_path, 12, every=3, feed_every=2, patience=3, seed=1, say=said.append)
    assert outcome.right, outcome
    assert all(outcome.results.values())
    assert outcome.kinds == {"worker", "several workers", "coordinator", "coordinator twice", "zombie worker", "Spark query"}
    assert outcome.zombies > 0
    assert len(said) >= 7


def test_an_unknown_kind_of_accident_is_refused():
    with pytest.raises(ef.FlowError, match="'driver' can't be killed; expected some of worker, several workers, coordinator"):
        Chaos(None, kinds=["driver"])
