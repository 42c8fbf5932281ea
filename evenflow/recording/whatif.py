"""Replays a policy on a whole recording. Its changes are not applied: it sees the recorded data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..balancer.plan import BalancePlan
from ..balancer.policies import named
from ..engine.errors import SnapshotError
from ..scheduler.policies.controller import Controller, DecisionRecord
from ..scheduler.protocol.view import JobView
from ..views.policy_snapshots import PolicySnapshots

LINES = 24
"""Moments of a recording at which a balancer plans."""


@dataclass(frozen=True, slots=True)
class WouldScale:
    """Looks of a scaling policy with the same decision. `begin`, `end`: seconds since the epoch; `last`: the newest look."""

    begin: float
    end: float
    looks: int
    last: DecisionRecord


@dataclass(frozen=True, slots=True)
class WouldMove:
    """A plan that a balancer would have made at a time; `problem` says why `plan` is None."""

    time: float
    plan: BalancePlan | None
    problem: str = ""


def would_scale(views: Iterable[JobView], policy: str, changed: Mapping[str, Any] | None = None) -> Iterator[WouldScale]:
    """Yield the looks of a scaling policy, at the times at which an autoscaler would have asked it.

    It has the job's settings for this policy, except for those in `changed`. Raises RequestError for an unknown policy or setting,
    FlowError if the job's settings lack a goal that it needs.
    """
    snapshots, chosen, controller = PolicySnapshots(), None, None
    span: WouldScale | None = None
    for view in views:
        snapshots.add(view)
        if controller is None or snapshots.policy(policy, changed) != chosen:
            chosen = snapshots.policy(policy, changed)
            controller = Controller(chosen, "advise")
        look = _look(controller, snapshots, view.now)
        if look is None:
            continue
        if span is not None and _same(span.last, look):
            span = replace(span, end=look.time, looks=span.looks + 1, last=look)
            continue
        if span is not None:
            yield span
        span = WouldScale(look.time, look.time, 1, look)
    if span is not None:
        yield span


def _look(controller: Controller, snapshots: PolicySnapshots, now: float) -> DecisionRecord | None:
    settings = snapshots.view.policy_settings
    if now - snapshots.quiet_since < settings.warm_up_s + settings.interval_s:
        controller.disturbed()
        return None
    if not controller.due(now):
        return None
    try:
        snapshot = snapshots.dataflow()
    except SnapshotError:
        return None
    before = controller.last_observation
    controller.observe(now, snapshot)
    return controller.last_observation if controller.last_observation is not before else None


def _same(one: DecisionRecord, other: DecisionRecord) -> bool:
    """True if both make the same change, for any reasons."""
    nodes = [(record.decided.add_nodes, record.decided.remove_node) for record in (one, other)]
    return one.changes == other.changes and nodes[0] == nodes[1]


def would_move(views: Iterable[JobView], times: Iterable[float], policy: str, operator: str | None) -> Iterator[WouldMove]:
    """Yield the plans of a balancer at each of the ascending `times`. Raises RequestError for an unknown balancer or operator."""
    balancer, snapshots, waiting = named(policy), PolicySnapshots(), list(times)
    for view in views:
        snapshots.add(view)
        if not waiting or view.now < waiting[0]:
            continue
        waiting = [time for time in waiting if time > view.now]
        try:
            yield WouldMove(view.now, snapshots.plan(operator, balancer))
        except SnapshotError as error:
            yield WouldMove(view.now, None, str(error))


def moments(began: float, ended: float, most: int = LINES) -> list[float]:
    """Return at most `most` times from begin to end, at equal distances.

    >>> moments(0.0, 10.0, 3)
    [0.0, 5.0, 10.0]
    """
    count = max(2, min(most, int(ended - began) + 1))
    return [began + (ended - began) * at / (count - 1) for at in range(count)]
