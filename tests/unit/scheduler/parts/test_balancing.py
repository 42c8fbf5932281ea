"""Automatic balancing as a closed loop: windows of a skewed stream in, tables out, until it is even; and no swinging after that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evenflow.engine.errors import RequestError
from evenflow.engine.protocol.routing import even_table
from evenflow.scheduler.configs.balance import BalanceConfig
from evenflow.scheduler.configs.job import JobConfig
from evenflow.scheduler.configs.run import MetricsConfig
from evenflow.scheduler.load.load_snapshot import hash_of
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.parts.balancing import Balancing, trigger_settings
from evenflow.state.hashing import group_of

GROUPS, WORKERS = 64, ("count-0", "count-1")
CONFIG = JobConfig(key_groups=GROUPS, parallelism=2, balance=BalanceConfig("hotspot"))


def hashes_of(keys):
    return np.array([hash_of(key) for key in keys], np.uint64)


def keys_of_worker(worker, count):
    """Return keys that the first table gives to a worker."""
    keys = [f"key-{i}" for i in range(20 * count)]
    owners = even_table(GROUPS, len(WORKERS)).owners(hashes_of(keys))
    return [key for key, owner in zip(keys, owners.tolist(), strict=True) if owner == worker][:count]


class Operator:
    """An operator whose workers need given useful seconds per second for each key; each window is a second."""

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


@pytest.mark.few(1)
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
    with pytest.raises(RequestError, match="'consistent' can't balance a job: use hotspot"):
        Balancing("consistent", WORKERS, CONFIG)


class JoinOperator(Operator):
    """A join whose rows come from the left, except for a part of each key's that comes from the right."""

    state_bytes = 1000
    """Each worker's bytes of state."""

    def __init__(self, loads, *, right=0.05, dealable=("left",), config=CONFIG, noise=0.0):
        super().__init__(loads, config=config, noise=noise)
        self.right, self.balancing = right, Balancing("hotspot", WORKERS, config, dealable)

    def parts(self, key, load):
        """Return each worker's part of a key's load."""
        (hashed,) = hashes_of([key])
        split = self.table.splits.get(int(hashed))
        if split is None:
            return {int(self.table.owners(np.array([hashed]))[0]): load}
        return {worker: load * ((1 - self.right) / len(split.workers) + self.right) for worker in split.workers}

    def workers(self):
        loads = np.zeros(len(WORKERS))
        for key, load in self.loads.items():
            for worker, part in self.parts(key, load).items():
                loads[worker] += part
        return loads

    def windows(self):
        groups = group_of(hashes_of(self.loads), GROUPS)
        by_group, hot = np.zeros((len(WORKERS), GROUPS)), [[] for _ in WORKERS]
        for (key, load), group in zip(self.loads.items(), groups.tolist(), strict=True):
            now = load * (1 + self.noise * self.random.uniform(-1, 1))
            for worker, part in self.parts(key, now).items():
                by_group[worker, group] += part
                left = part - now * self.right
                hot[worker].append((key, int(part * 10_000), int(left * 10_000)))
        for index, worker in enumerate(WORKERS):
            present, top = np.flatnonzero(by_group[index]), sorted(hot[index], key=lambda item: -item[1])[:16]
            total = float(by_group[index].sum())
            yield WorkerWindow(
                worker, float(self.window), 1.0, useful=total, keyed_records=int(total * 10_000), state_bytes=self.state_bytes,
                groups=present.astype(np.int32), load=by_group[index][present], hot_keys=tuple((key, n) for key, n, _ in top),
                hot_left=tuple(left for *_, left in top),
            )  # fmt: skip


def with_hot_key(load=0.8):
    cold = [*keys_of_worker(0, 20), *keys_of_worker(1, 20)]
    return dict.fromkeys(cold, 0.01) | {cold[0]: load}


def test_hot_key_is_split_and_left_so_while_it_is_hot():
    operator = JoinOperator(with_hot_key())
    assert operator.run(60) < 1.1
    ((_, plan),) = operator.rebalances
    (split,) = plan.splits
    assert (split.key, split.home, split.others, split.dealt) == (keys_of_worker(0, 1)[0], 0, (1,), "left")
    assert f"hot key {split.key!r} alone has" in plan.reason


@pytest.mark.parametrize(("max_bytes", "splits"), [(None, True), (100_000, True), (1000, False)])
def test_hot_key_is_not_split_if_its_copies_have_more_bytes_than_a_plan_may_move(max_bytes, splits):
    operator = JoinOperator(with_hot_key(), config=replace(CONFIG, balance=replace(CONFIG.balance, max_bytes=max_bytes)))
    operator.state_bytes = 1_000_000 * GROUPS // len(WORKERS)  # 5 % of almost all state of the key's group is copied
    operator.run(60)
    assert bool(operator.table.splits) == splits


def test_key_that_cooled_is_gathered_after_a_rest_and_split_again_when_it_is_hot_again():
    operator = JoinOperator(with_hot_key())
    operator.run(10)
    hot = operator.rebalances[0][1].splits[0].key
    operator.loads[hot] = 0.01
    operator.run(9)
    assert operator.table.splits, "it rests"
    operator.run(10)
    assert not operator.table.splits
    assert operator.rebalances[-1][1].gathers == (hot,)
    operator.loads[hot] = 0.8
    operator.run(10)
    assert operator.table.splits
    assert operator.workers().max() < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.1, 0.3])
@pytest.mark.parametrize("load", [0.2, 0.3, 0.4, 0.8])
def test_noise_does_not_make_a_key_go_from_split_to_whole_and_back(noise, load):
    operator = JoinOperator(with_hot_key(load), noise=noise)
    operator.run(120)
    changes = [plan for _, plan in operator.rebalances if plan.splits or plan.gathers]
    assert len(changes) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("period", [4, 15])
def test_key_that_is_hot_now_and_then_changes_no_more_often_than_it_must(period):
    operator = JoinOperator(with_hot_key())
    hot, changes = keys_of_worker(0, 1)[0], 120 // period
    for turn in range(changes):
        operator.loads[hot] = 0.8 if turn % 2 else 0.01
        operator.run(period)
    reshaping = [plan for _, plan in operator.rebalances if plan.splits or plan.gathers]
    assert len(reshaping) <= (1 if period < 10 else changes)


def test_setting_and_operators_that_can_not_deal_leave_keys_whole():
    whole = JobConfig(key_groups=GROUPS, parallelism=2, balance=BalanceConfig("hotspot", split_hot_keys=False))
    for operator in (JoinOperator(with_hot_key(), config=whole), JoinOperator(with_hot_key(), dealable=())):
        operator.run(30)
        assert not operator.table.splits
