"""Automatic balancing as a closed loop: windows of a skewed stream in, tables out, until it is even; and no swinging after that."""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.engine.errors import RequestError
from evenflow.engine.protocol.routing import even_table
from evenflow.scheduler.config import JobConfig
from evenflow.scheduler.configs.balance import BalanceConfig
from evenflow.scheduler.configs.metrics import MetricsConfig
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.migration.balancing import Balancing, trigger_settings
from evenflow.scheduler.migration.load_snapshot import hash_of
from evenflow.state.hashing import group_of

GROUPS, WORKERS = 64, ("count-0", "count-1")
CONFIG = JobConfig(key_groups=GROUPS, parallelism=2, balance=BalanceConfig("hotspot"))


def hashes_of(keys):
    return np.array([hash_of(key) for key in keys], np.uint64)


def keys_of_worker(worker, count):
    """Keys that the first table gives to a worker."""
    keys = [f"key-{i}" for i in range(20 * count)]
    owners = even_table(GROUPS, len(WORKERS)).owners(hashes_of(keys))
    return [key for key, owner in zip(keys, owners.tolist(), strict=True) if owner == worker][:count]


class Operator:
    """An operator whose workers need so many useful seconds per second for each key; each window is a second."""

    def __init__(self, loads, *, noise=0.0, config=CONFIG):
        self.loads, self.noise = loads, noise
        self.balancing = Balancing("hotspot", WORKERS, config)
        self.table = even_table(GROUPS, len(WORKERS))
        self.random, self.window, self.rebalances = np.random.default_rng(3), 0, []

    def workers(self):
        owners = self.table.owners(hashes_of(self.loads))
        return np.bincount(owners, list(self.loads.values()), len(WORKERS))

    def windows(self):
        keys, hashes = list(self.loads), hashes_of(self.loads)
        owners, groups = self.table.owners(hashes), group_of(hashes, GROUPS)
        loads = np.array(list(self.loads.values())) * (1 + self.noise * self.random.uniform(-1, 1, len(keys)))
        for index, worker in enumerate(WORKERS):
            mine = np.flatnonzero(owners == index)
            by_group = np.bincount(groups[mine], loads[mine], GROUPS)
            present = np.flatnonzero(by_group)
            hot = sorted(((keys[i], int(loads[i] * 10_000)) for i in mine), key=lambda item: -item[1])[:16]
            yield WorkerWindow(
                worker, float(self.window), 1.0, useful=float(by_group.sum()), keyed_records=int(by_group.sum() * 10_000), state_bytes=1000,
                groups=present.astype(np.int32), load=by_group[present], hot_keys=tuple(hot),
            )  # fmt: skip

    def run(self, windows, *, moving=False):
        for _ in range(windows):
            for window in self.windows():
                self.balancing.add(window, self.table)
            decided = self.balancing.decide(self.table, moving=moving)
            if decided is not None:
                self.table = decided.target
                self.rebalances.append((self.window, decided.plan))
            self.window += 1
        loads = self.workers()
        return loads.max() / loads.mean()


def skewed():
    return {**dict.fromkeys(keys_of_worker(0, 40), 0.015), **dict.fromkeys(keys_of_worker(1, 40), 0.005)}


def test_a_skewed_stream_is_balanced_within_five_windows_and_then_left():
    operator = Operator(skewed())
    assert operator.run(5) <= 1.05
    operator.run(60)
    assert len(operator.rebalances) == 1


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_noise_does_not_make_keys_go_back_and_forth(noise):
    operator = Operator(skewed(), noise=noise)
    operator.run(100)
    assert 1 <= len(operator.rebalances) <= 2
    moved = [move.group if move.group is not None else move.key for _, plan in operator.rebalances for move in plan.moves]
    assert len(moved) == len(set(moved))


def test_a_hot_key_gets_a_route_and_keeps_its_name_in_the_plan():
    keys = keys_of_worker(0, 4)
    operator = Operator(dict.fromkeys(keys, 0.1) | {keys[0]: 0.5})
    operator.run(5)
    (_, plan), *_ = operator.rebalances
    named = [move.key for move in plan.moves if move.group is None]
    assert set(named) <= set(keys)
    assert operator.workers().max() == pytest.approx(0.5)


def test_nothing_is_planned_while_keys_move_and_the_windows_of_then_do_not_count():
    operator = Operator(skewed())
    operator.run(20, moving=True)
    assert not operator.rebalances
    operator.run(2)
    assert not operator.rebalances
    operator.run(1)
    assert len(operator.rebalances) == 1


def test_an_operator_that_is_hardly_busy_is_left_as_it_is():
    operator = Operator({key: load / 20 for key, load in skewed().items()})
    operator.run(20)
    assert not operator.rebalances


def test_a_load_that_is_even_is_left_as_it_is():
    operator = Operator(dict.fromkeys([*keys_of_worker(0, 40), *keys_of_worker(1, 40)], 0.01))
    operator.run(20)
    assert not operator.rebalances


def test_durations_become_windows_rounded_up():
    settings = trigger_settings(JobConfig(metrics=MetricsConfig(window="400ms"), balance=BalanceConfig(after="1s", cooldown="2s", rest=0)))
    assert (settings.windows, settings.cooldown, settings.rest) == (3, 5, 0)


def test_a_balancer_that_splits_keys_cannot_balance_a_job():
    with pytest.raises(RequestError, match="'two_choices' can't balance a job: use hotspot"):
        Balancing("two_choices", WORKERS, CONFIG)
