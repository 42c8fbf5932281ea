"""A job's default balancing leaves a load alone that is even, idle or changes too fast, in a model of its operator's workers."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from evenflow.balancer import trigger
from evenflow.connectors.generated.generate import zipf_cdf
from evenflow.engine.keys.encoding import key_hashes
from evenflow.engine.protocol.routing import even_table
from evenflow.scheduler.configs.job import JobConfig
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.parts.balancing import Balancing
from evenflow.state.hashing import group_of

SECONDS_IN_AN_HOUR = 3600


class Model:
    """An operator with uniform keys, whose records arrive at random.

    `rate`: records per second and worker; `busy`: the mean busy share of a worker; `noise`: the standard deviation of the useful
    time that a worker measures in a second, as a part of it.
    """

    def __init__(self, workers, keys=100_000, rate=5000, busy=0.5, noise=0.05):
        config = JobConfig()
        self.rate, self.busy, self.noise = rate, busy, noise
        self.names = tuple(f"count-{i}" for i in range(workers))
        self.balancing = Balancing(config.balancer, self.names, config)
        self.table = even_table(config.key_groups, workers)
        self.hashes = key_hashes([pa.array(np.arange(keys))], "model")
        self.groups = group_of(self.hashes, config.key_groups).astype(np.int64)
        self.random, self.shares, self.window = np.random.default_rng(11), np.full(keys, 1 / keys), 0
        self.plans = []

    def skewed(self, factor):
        """Return shares of the keys by which those of the first worker have `factor` times as many records as the others'."""
        weights = np.where(self.table.owners(self.hashes) == 0, factor, 1.0)
        return weights / weights.sum()

    def run(self, seconds):
        for _ in range(seconds):
            self._report(self.random.poisson(self.rate * len(self.names) * self.shares))
            decided = self.balancing.decide(self.table, moving=False)
            if decided is not None:
                self.plans.append(decided.plan)
                self.table = decided.target
            self.window += 1
        return self.plans

    def _report(self, records):
        owners, size = self.table.owners(self.hashes), len(self.table)
        present = np.flatnonzero(records)
        by_owner = present[np.argsort(owners[present], kind="stable")]
        edges = np.searchsorted(owners[by_owner], np.arange(len(self.names) + 1))
        for name, (first, last) in zip(self.names, pairwise(edges.tolist()), strict=True):
            mine = by_owner[first:last]
            counts = np.bincount(self.groups[mine], records[mine], size)
            groups, total = np.flatnonzero(counts), int(counts.sum())
            cost = self.busy / self.rate * (1 + self.noise * self.random.standard_normal())
            hot = mine[np.argsort(-records[mine])[:16]]
            window = WorkerWindow(
                name, float(self.window), 1.0, rows_in=total, useful=total * cost, keyed_records=total, state_bytes=1_000_000,
                groups=groups.astype(np.int32), load=counts[groups] * cost,
                hot_keys=tuple(zip(hot.tolist(), records[hot].tolist(), strict=True)),
            )  # fmt: skip
            self.balancing.add(window, self.table)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 4, 16])
def test_an_even_load_with_noise_moves_nothing_in_an_hour(workers):
    assert not Model(workers, rate=1000).run(SECONDS_IN_AN_HOUR)


@pytest.mark.few(1)
@pytest.mark.parametrize(("workers", "rate"), [(8, 5), (2, 5), (4, 20), (8, 20), (16, 20)])
def test_a_few_expensive_records_are_no_skew(workers, rate):
    assert not Model(workers, rate=rate).run(200)


def test_chance_is_what_holds_the_balancer_back_when_records_are_few(monkeypatch):
    monkeypatch.setattr(trigger, "CHANCE", 0.0)
    assert len(Model(8, rate=5).run(60)) > 1


@pytest.mark.parametrize(("workers", "keys"), [(2, 3), (4, 6)])
def test_a_few_keys_that_can_not_be_even_are_left_where_they_are(workers, keys):
    assert not Model(workers, keys=keys).run(200)


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "keys"), [(8, 20), (16, 50)])
def test_a_few_keys_are_placed_once_and_seldom_again(workers, keys):
    assert 1 <= len(Model(workers, keys=keys, noise=0.1).run(600)) <= 10


@pytest.mark.slow
def test_without_proofs_of_its_plans_the_balancer_would_place_a_few_keys_again_and_again(monkeypatch):
    monkeypatch.setattr(trigger.Trigger, "_note_effect", lambda self, good: None)
    assert len(Model(16, keys=50, noise=0.1).run(600)) > 20


@pytest.mark.parametrize("busy", [0.03, 0.08])
def test_nearly_idle_workers_are_left_alone_however_uneven(busy):
    model = Model(4, keys=1000, busy=busy)
    model.shares = model.skewed(2.0)
    assert not model.run(20)
    model.busy = 0.5
    assert model.run(20)


def test_a_skew_that_changes_every_five_seconds_moves_each_piece_once_per_change_at_most():
    model, ranked = Model(16, keys=5000), np.diff(zipf_cdf(5000, 1.0), prepend=0.0)
    for _ in range(10):
        before = len(model.plans)
        model.shares = model.random.permutation(ranked)
        plans = model.run(5)[before:]
        moved = Counter((move.group, move.key) for plan in plans for move in plan.moves)
        assert len(plans) <= 1
        assert max(moved.values(), default=0) <= 1


def test_seconds_before_and_after_an_interruption_are_no_row():
    model = Model(2, keys=1000)
    model.shares = model.skewed(2.0)
    model.run(2)
    model._report(model.random.poisson(model.rate * 2 * model.shares))
    assert model.balancing.decide(model.table, moving=True) is None
    model.window += 1
    assert not model.run(2)
    assert model.run(1)
