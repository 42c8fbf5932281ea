"""The trigger plans once, after several uneven windows, and doesn't repeat a plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.balancer.plan import BalancePlan
from evenflow.balancer.policies import named
from evenflow.balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot
from evenflow.balancer.trigger import Trigger, TriggerSettings, mean_of
from evenflow.balancer.verdict import Verdict
from evenflow.engine.errors import FlowError
from evenflow.engine.protocol.routing import RoutingTable, even_table

WORKERS, KEY_GROUPS = 4, 64


def groups_of(*loads_by_worker: tuple[float, ...]) -> list[GroupLoad]:
    loads = [(worker, load) for worker, loads in enumerate(loads_by_worker) for load in loads]
    return [GroupLoad(group, worker, load, 100) for group, (worker, load) in enumerate(loads)]


EVEN = LoadSnapshot(2, groups_of((1, 1), (1, 1)))
UNEVEN = LoadSnapshot(2, groups_of((1, 1, 1, 1), (0, 0)))


class Stream:
    """A closed loop: keys (their hash is their number) with loads, a routing table, and plans carried out `delay` windows later."""

    def __init__(self, loads: dict[int, float], settings: TriggerSettings | None = None, delay: int = 0, noise: float = 0.0) -> None:
        self.loads, self.table = loads, even_table(KEY_GROUPS, WORKERS)
        self.trigger, self.delay = Trigger(named("hotspot"), settings or TriggerSettings()), delay
        self.random, self.noise = np.random.default_rng(7), noise
        self.on_the_way: list[tuple[int, RoutingTable]] = []
        self.plans: list[tuple[int, BalancePlan]] = []
        self.window = 0

    def snapshot(self) -> LoadSnapshot:
        now = {key: load * (1 + self.noise * self.random.uniform(-1, 1)) for key, load in self.loads.items()}
        groups = np.zeros(KEY_GROUPS)
        for key, load in now.items():
            groups[key % KEY_GROUPS] += load
        hot = sorted(now, key=lambda key: (-now[key], key))[:8]
        hot += [key for key in self.table.keys if key not in hot]
        return LoadSnapshot(
            WORKERS,
            [GroupLoad(g, int(self.table.groups[g]), float(groups[g]), 1000) for g in range(KEY_GROUPS)],
            [KeyLoad(key, key % KEY_GROUPS, now.get(key, 0.0), 10, self.table.keys.get(key)) for key in hot],
        )

    def run(self, windows: int = 1) -> float:
        """Run these windows and return the imbalance of the last, over its floor."""
        for _ in range(windows):
            self.window += 1
            if self.on_the_way and self.on_the_way[0][0] <= self.window:
                self.table = self.on_the_way.pop(0)[1]
            snapshot = self.snapshot()
            plan = self.trigger.observe(snapshot)
            if plan is not None:
                self.plans.append((self.window, plan))
                self.on_the_way.append((self.window + 1 + self.delay, plan.table(self.table, lambda key: key)))
        return snapshot.imbalance / snapshot.floor


def background() -> dict[int, float]:
    return dict.fromkeys(range(4 * KEY_GROUPS), 1.0)


def with_hot(*keys: int, load: float = 40.0) -> dict[int, float]:
    return {**background(), **dict.fromkeys(keys, load)}


def test_one_uneven_window_is_no_reason_to_act():
    trigger = Trigger()
    assert [trigger.observe(snapshot) for snapshot in (UNEVEN, UNEVEN, EVEN, UNEVEN, UNEVEN)] == [None] * 5


def test_several_uneven_windows_in_a_row_are_a_reason_to_act():
    trigger = Trigger(settings=TriggerSettings(windows=3))
    assert [trigger.observe(UNEVEN) is None for _ in range(3)] == [True, True, False]


def test_even_load_never_acts():
    trigger = Trigger()
    assert all(trigger.observe(EVEN) is None for _ in range(20))


def test_after_acting_it_cools_down():
    trigger = Trigger(settings=TriggerSettings(windows=1, cooldown=5, rest=0))
    assert [trigger.observe(UNEVEN) is not None for _ in range(11)] == [True, *[False] * 4, True, *[False] * 4, True]


def test_an_uneven_load_that_no_placement_improves_is_left_alone():
    trigger = Trigger(settings=TriggerSettings(windows=1))
    snapshot = LoadSnapshot(2, groups_of((5,), (1,)), [KeyLoad("JFK", 0, 5.0)])
    assert snapshot.imbalance == snapshot.floor > 1.2
    assert all(trigger.observe(snapshot) is None for _ in range(5))


def test_the_trigger_says_why_it_does_nothing():
    trigger = Trigger(settings=TriggerSettings(windows=2, cooldown=3))
    floor = LoadSnapshot(2, groups_of((5,), (1,)), [KeyLoad("JFK", 0, 5.0)])
    told = []
    for snapshot in (EVEN, floor, UNEVEN, UNEVEN, UNEVEN, UNEVEN, EVEN):
        trigger.observe(snapshot)
        told.append(trigger.verdict)
    assert told == [
        Verdict.EVEN, Verdict.FLOOR, Verdict.BRIEF, Verdict.PLANNED, Verdict.SETTLING, Verdict.SETTLING, Verdict.EVEN,
    ]  # fmt: skip


def test_an_uneven_window_soon_after_a_plan_is_said_to_be_too_early():
    trigger = Trigger(settings=TriggerSettings(windows=1, cooldown=3))
    plan = trigger.observe(UNEVEN)
    targets = {move.group: move.target for move in plan.moves}
    arrived = [group._replace(worker=targets.get(group.group, group.worker)) for group in UNEVEN.key_groups]
    trigger.observe(LoadSnapshot(2, arrived))
    trigger.observe(LoadSnapshot(2, [group._replace(load=9.0) if group.worker else group for group in arrived]))
    assert trigger.verdict is Verdict.COOLING


def test_a_plan_that_would_gain_too_little_is_said_to():
    trigger = Trigger(settings=TriggerSettings(windows=1, least_gain=10.0))
    trigger.observe(UNEVEN)
    assert trigger.verdict is Verdict.NO_GAIN


def test_workers_that_join_restart_the_count():
    trigger = Trigger(settings=TriggerSettings(windows=2))
    more = LoadSnapshot(3, UNEVEN.key_groups)
    assert [trigger.observe(s) is None for s in (UNEVEN, more, more)] == [True, True, False]


def test_the_plan_is_made_from_the_mean_of_the_windows():
    trigger = Trigger(settings=TriggerSettings(windows=2))
    trigger.observe(LoadSnapshot(2, groups_of((8, 2, 2), (0,))))
    plan = trigger.observe(LoadSnapshot(2, groups_of((0, 2, 2), (0,))))
    assert plan is not None
    assert plan.imbalance_before == pytest.approx(2.0)
    assert plan.imbalance_after == pytest.approx(1.0)


def test_one_hotspot_is_not_chased_while_the_moves_are_on_their_way():
    stream = Stream(with_hot(3, 5, 9), TriggerSettings(cooldown=6), delay=3)
    stream.run(9)
    assert len(stream.plans) == 1
    assert stream.run() <= 1.2


def test_moves_that_never_happen_are_planned_again_after_the_cool_down():
    stream = Stream(with_hot(3, 5, 9), TriggerSettings(cooldown=4, rest=4), delay=1000)
    stream.run(12)
    assert [window for window, _ in stream.plans] == [3, 9]
    assert {move.key for move in stream.plans[0][1].moves} == {move.key for move in stream.plans[1][1].moves}


@pytest.mark.slow
@given(st.lists(st.sets(st.integers(0, KEY_GROUPS - 1), min_size=1, max_size=6), min_size=1, max_size=4), st.integers(0, 1))
def test_it_follows_hot_keys_that_shift_within_five_windows(hot_sets, delay):
    stream = Stream(background(), delay=delay)
    for hot in hot_sets:
        stream.loads = with_hot(*hot)
        stream.run(5)
        assert stream.run() <= 1.2


@pytest.mark.parametrize(("noise", "most"), [(0.1, 1), (0.3, 2), (0.6, 5)])
def test_noise_does_not_make_it_swing(noise, most):
    stream = Stream(with_hot(3, 5, 9), noise=noise)
    stream.run(100)
    assert 1 <= len(stream.plans) <= most
    last: dict[tuple[object, object], int] = {}
    for window, plan in stream.plans:
        moved = [(move.group, move.key) for move in plan.moves]
        assert all(window - last.get(piece, -100) >= TriggerSettings().rest for piece in moved)
        last |= dict.fromkeys(moved, window)


def test_keys_that_have_moved_stay_unless_their_load_shifts():
    trigger = Trigger(settings=TriggerSettings(windows=1, cooldown=1, rest=100))
    plan = trigger.observe(UNEVEN)
    assert plan is not None
    assert [(move.group, move.target) for move in plan.moves] == [(0, 1), (1, 1)]
    moved = LoadSnapshot(2, [GroupLoad(0, 1, 1.0), GroupLoad(1, 1, 1.0), GroupLoad(2, 0, 0.0), GroupLoad(3, 0, 0.0)])
    assert trigger.observe(moved) is None
    shifted = LoadSnapshot(2, [GroupLoad(0, 1, 2.0), GroupLoad(1, 1, 2.0), GroupLoad(2, 0, 0.0), GroupLoad(3, 0, 0.0)])
    assert trigger.observe(shifted) is not None


def test_a_mean_keeps_the_last_placement():
    mean = mean_of([LoadSnapshot(2, [GroupLoad(0, 0, 4.0)]), LoadSnapshot(2, [GroupLoad(0, 1, 2.0), GroupLoad(1, 0, 2.0)])])
    assert mean.key_groups == (GroupLoad(0, 1, 3.0), GroupLoad(1, 0, 1.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 1.01}, "threshold is 1.01, below the tolerance of 1.05"),
        ({"windows": 0}, "windows is 0: it must be 1 or more"),
        ({"cooldown": -1}, "cooldown is -1"),
        ({"shift": 0.5}, "shift is 0.5"),
        ({"tolerance": 0.5}, "tolerance is 0.5"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(FlowError, match=message):
        TriggerSettings(**settings)
