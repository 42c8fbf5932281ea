"""What a policy would have done over the whole time of a recording. What it would have changed does not come about: it sees what was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..balancer.plan import BalancePlan
from ..balancer.policies import named as balancer_named
from ..engine.errors import SnapshotError
from ..scheduler.policies.controller import Controller, DecisionRecord
from ..scheduler.protocol.view import JobView
from .seen import Seen

LINES = 24
"""Moments of a recording at which a balancer is asked."""


@dataclass(frozen=True, slots=True)
class WouldScale:
    """`begin`, `end`: the looks of a scaling policy, in seconds since the epoch, that led to the same; `last`: the newest of them."""

    begin: float
    end: float
    looks: int
    last: DecisionRecord


@dataclass(frozen=True, slots=True)
class WouldMove:
    """What a balancer would have moved at a time; the reason why nothing can be said if `plan` is None."""

    time: float
    plan: BalancePlan | None
    problem: str = ""


def would_scale(views: Iterable[JobView], policy: str) -> Iterator[WouldScale]:
    """The looks of a scaling policy, when an autoscaler would have asked it.

    Raises RequestError for an unknown policy, FlowError if the job's settings lack what it needs.
    """
    controller, seen = Controller(policy, "advise"), Seen()
    told: WouldScale | None = None
    for view in views:
        seen.add(view)
        look = _look(controller, seen, view.now)
        if look is None:
            continue
        if told is not None and _same(told.last, look):
            told = replace(told, end=look.time, looks=told.looks + 1, last=look)
            continue
        if told is not None:
            yield told
        told = WouldScale(look.time, look.time, 1, look)
    if told is not None:
        yield told


def _look(controller: Controller, seen: Seen, now: float) -> DecisionRecord | None:
    settings = seen.view.policy_settings
    if now - seen.quiet_since < settings.warm_up_s + settings.interval_s:
        controller.disturbed()
        return None
    if not controller.due(now):
        return None
    try:
        snapshot = seen.dataflow()
    except SnapshotError:
        return None
    before = controller.last_look
    controller.observe(now, snapshot)
    return controller.last_look if controller.last_look is not before else None


def _same(one: DecisionRecord, other: DecisionRecord) -> bool:
    """Whether both change the same, for whatever reasons."""
    nodes = [(record.decided.add_nodes, record.decided.remove_node) for record in (one, other)]
    return one.changes == other.changes and nodes[0] == nodes[1]


def would_move(views: Iterable[JobView], times: Iterable[float], policy: str, operator: str | None) -> Iterator[WouldMove]:
    """The plans of a balancer at each of the rising `times`. Raises RequestError for an unknown balancer or operator."""
    balancer, seen, waiting = balancer_named(policy), Seen(), list(times)
    for view in views:
        seen.add(view)
        if not waiting or view.now < waiting[0]:
            continue
        waiting = [time for time in waiting if time > view.now]
        try:
            yield WouldMove(view.now, seen.plan(operator, balancer))
        except SnapshotError as error:
            yield WouldMove(view.now, None, str(error))


def moments(began: float, ended: float, most: int = LINES) -> list[float]:
    """At most that many times from begin to end, as far apart from each other.

    >>> moments(0.0, 10.0, 3)
    [0.0, 5.0, 10.0]
    """
    count = max(2, min(most, int(ended - began) + 1))
    return [began + (ended - began) * at / (count - 1) for at in range(count)]
