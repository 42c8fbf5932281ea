"""The choice of one of several clusters by a process that names none."""

from __future__ import annotations

import pytest

from evenflow.actors.driver.finding import chosen
from evenflow.engine.errors import ClusterError


@pytest.mark.parametrize(
    ("job", "clusters", "head"),
    [
        pytest.param("b", {"h:1": ["a"], "h:2": ["a", "b"]}, "h:2", id="the one on which the job runs"),
        pytest.param(None, {"h:1": [], "h:2": ["a"]}, "h:2", id="the only one with jobs"),
        pytest.param("a", {"h:1": None, "h:2": ["a"]}, "h:2", id="one that does not answer is none"),
    ],
)
def test_cluster_on_which_the_job_runs_is_chosen_and_named(job, clusters, head):
    said = []
    assert chosen(job, clusters, said.append) == head
    assert f"runs on the Ray cluster at {head}, one of {len(clusters)} on this machine" in said[0]


@pytest.mark.parametrize(
    ("job", "clusters", "problem"),
    [
        pytest.param("a", {}, "no Ray cluster of yours runs on this machine: set RAY_ADDRESS", id="no cluster"),
        pytest.param("a", {"h:1": ["a"], "h:2": ["a"]}, "the job `a` runs on 2 of your 2 Ray clusters", id="several"),
        pytest.param("c", {"h:1": ["a"], "h:2": None}, "runs on none of your 2 .*: h:1 has a; h:2 does not answer", id="none"),
        pytest.param(None, {"h:1": [], "h:2": []}, "a job runs on none of your 2 .*RAY_ADDRESS=h:1", id="no job"),
    ],
)
def test_nothing_is_guessed(job, clusters, problem):
    with pytest.raises(ClusterError, match=problem):
        chosen(job, clusters, lambda _: pytest.fail("nothing is chosen"))
