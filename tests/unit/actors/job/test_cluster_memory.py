"""The memory of a run in the cluster's store, here a dict: it outlives a coordinator, and later coordinators have the last word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenflow.actors.job import cluster_memory
from evenflow.actors.job.cluster_memory import ClusterMemory


@pytest.fixture(autouse=True)
def store(monkeypatch):
    kept = {}
    monkeypatch.setattr(cluster_memory.internal_kv, "_internal_kv_put", lambda key, value, namespace: kept.__setitem__(key, value))
    monkeypatch.setattr(cluster_memory.internal_kv, "_internal_kv_get", lambda key, namespace: kept.get(key))
    monkeypatch.setattr(cluster_memory.internal_kv, "_internal_kv_del", lambda key, namespace: kept.pop(key, None))
    return kept


def keep(memory, **fields):
    memory.keep(replace(memory.record, **fields))


def test_next_coordinator_knows_what_the_last_one_kept(store):
    keep(ClusterMemory("run"), committed=3, settings={"values": {"linger": "2ms"}, "balancers": {}})
    after = ClusterMemory("run")
    assert (after.record.committed, after.record.settings) == (3, {"values": {"linger": "2ms"}, "balancers": {}})
    after.forget()
    assert store == {}


def test_coordinator_that_was_declared_lost_adds_commits_and_changes_no_settings():
    lost = ClusterMemory("run")
    keep(lost, settings={"values": {"linger": "2ms"}})
    after = ClusterMemory("run")
    keep(after, term=1)
    keep(after, settings={"values": {"linger": "3ms"}})
    keep(lost, committed=7)
    record = ClusterMemory("run").record
    assert (record.term, record.committed, record.settings) == (1, 7, {"values": {"linger": "3ms"}})


def test_nothing_new_is_neither_read_nor_written(store, monkeypatch):
    memory = ClusterMemory("run")
    keep(memory, committed=3)
    monkeypatch.delattr(cluster_memory.internal_kv, "_internal_kv_get")
    monkeypatch.delattr(cluster_memory.internal_kv, "_internal_kv_put")
    keep(memory, committed=3)
    assert memory.record.committed == 3
