"""A job from Kafka to Kafka on Ray loses processes and connections every two seconds: a reader of its topic sees each row once."""

from __future__ import annotations

import pytest
from patience import patience

from evenflow.bench.kafka import chaos

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(600),
]  # a process of Ray's takes from one second to ten to start, by how busy the machine is


def test_killed_processes_and_cut_connections_do_not_change_what_a_reader_of_the_topic_sees(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(chaos, "END_SECONDS", patience(chaos.END_SECONDS))
    outcome = chaos.run(tmp_path, 15, kinds=("worker", "several workers", "coordinator"), seed=1, say=said.append)
    assert outcome.right, "\n".join(said)
    assert outcome.results["counts"] == outcome.rows > 0
    assert outcome.kinds >= {"worker", "several workers", "coordinator", "connections", "committing process"}
