"""Dhalion: symptoms, diagnoses, resolvers, and a blacklist of failed actions; one operator at a time.

Floratou, Agrawal, Graham, Rao, Ramasamy: Dhalion: Self-Regulating Stream Processing in Heron, VLDB 2017, section 5. The symptom
is backpressure; its origin identifies the operator; comparing its instances gives the diagnosis:

    skew             an instance processes more than the others, and has a longer queue       -> rebalance
    slow instance    an instance has a longer queue but processes no more than the others     -> rebalance
    underprovisioned all instances are alike                                                  -> ceil(n * (1 + u)) workers
    overprovisioned  no backpressure, and the operator's queues are nearly empty              -> floor(n * scale_down_factor) workers

with u = min(b / (1 - b), 4) for backpressure during the part b of the time: what was held back over what was let through (Heron's
ScaleUpResolver has b in milliseconds per second and 1000 for 1). Actions that didn't help go on the blacklist.

Invariant: at most one operator changes per decision, since rules can't tell how changes of several combine.

An operator waits for credit because a later one is slow; the last operator of such a chain is the slow one. `backpressure` of an
operator without successors can only be its own, as Heron reports it.

>>> from .dataflow.figures import InstanceFigures, OperatorFigures
>>> o = OperatorFigures.summed("o", [InstanceFigures(backpressure=0.5), InstanceFigures(backpressure=0.0)])
>>> Dhalion().decide(DataflowSnapshot((o,)), DhalionMemory())[0].parallelism
{'o': 4}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor
from statistics import median
from typing import ClassVar

from ...engine.time.duration import Duration, seconds
from ..checks import duration, share
from .base import ScalingPolicy
from .bounds import smallest, within_bounds
from .dataflow.figures import OperatorFigures
from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision

MOST_GROWTH = 4.0
"""The largest growth, relative to the present instances: Heron never requests more than five times as many."""

LEAST_BACKPRESSURE = 0.02
"""A part of the time below which waiting for credit is no symptom."""

LEAST_RELIEF = 0.1
"""The smallest relative drop of backpressure that counts as help."""

OUTLIER = 1.5
"""An instance with this multiple of the median is unlike the others."""

IDLE_SECONDS = 0.1
"""An operator for which less than this much of its work waits is idle enough to give workers back."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """An action: the diagnosis, the operator, its new number of workers, the backpressure (share of time) before, and the
    time.
    """

    diagnosis: str
    operator: str
    workers: int
    backpressure: float
    time: float


@dataclass(frozen=True, slots=True)
class DhalionMemory:
    """The state between decisions. `attempt`: the last action, until it is judged; `blacklist`: actions that didn't help, with
    the time of that.
    """

    attempt: Resolution | None = None
    blacklist: tuple[Resolution, ...] = ()


@dataclass(frozen=True, slots=True)
class Dhalion(ScalingPolicy[DhalionMemory]):
    """A policy that acts on backpressure, one operator at a time, until the symptoms are gone. It needs no rates from outside.

    An idle operator goes to `scale_down_factor` of its workers; an action that didn't help is not repeated for `blacklist`.

    Raises FlowError, naming the setting, for impossible values.
    """

    name: ClassVar[str] = "dhalion"

    scale_down_factor: float = 0.8
    blacklist: Duration = "10m"

    def __post_init__(self) -> None:
        share(self, "scale_down_factor")
        duration(self, "blacklist")

    def start(self) -> DhalionMemory:
        return DhalionMemory()

    def decide(self, snapshot: DataflowSnapshot, memory: DhalionMemory) -> tuple[ScalingDecision, DhalionMemory]:
        memory = _judged(snapshot, memory, seconds(self.blacklist))
        slow = slow_operator(snapshot)
        if slow is None:
            return self._give_back(snapshot, memory)
        operator, held_back = snapshot.operator(slow), held_back_by(snapshot, slow)
        diagnosis = diagnose(operator)
        if diagnosis != "underprovisioned" and not _listed(memory, diagnosis, slow, operator.parallelism):
            reason = f"{slow}: {diagnosis}: one instance has most of what waits; senders wait {held_back:.0%} of the time"
            attempt = Resolution(diagnosis, slow, operator.parallelism, held_back, snapshot.time)
            return ScalingDecision(rebalance=(slow,), reason=reason), replace(memory, attempt=attempt)
        wanted = scaled_up(operator.parallelism, held_back)
        if _listed(memory, "underprovisioned", slow, wanted):
            return ScalingDecision(reason=f"{slow} is slow, but {wanted} workers are on the blacklist: they didn't help"), memory
        changed, notes = within_bounds(snapshot, {slow: wanted})
        reason = "; ".join((f"{slow} is underprovisioned: senders wait {held_back:.0%} of the time", *notes))
        if not changed:
            return ScalingDecision(reason=reason), memory
        return ScalingDecision(changed, reason=reason), replace(
            memory, attempt=Resolution("underprovisioned", slow, changed[slow], held_back, snapshot.time)
        )

    def _give_back(self, snapshot: DataflowSnapshot, memory: DhalionMemory) -> tuple[ScalingDecision, DhalionMemory]:
        for name in sorted(snapshot.order, key=lambda name: -snapshot.operator(name).parallelism):
            operator = snapshot.operator(name)
            wanted = max(floor(operator.parallelism * self.scale_down_factor), smallest(operator, snapshot.settings))
            taken_in = operator.observed_processing_rate
            if (
                not snapshot.inputs(name)
                or taken_in is None
                or operator.queue_records > IDLE_SECONDS * taken_in
                or wanted >= operator.parallelism
                or _listed(memory, "overprovisioned", name, wanted)
            ):
                continue
            changed, notes = within_bounds(snapshot, {name: wanted})
            if changed:
                reason = "; ".join((f"{name} is overprovisioned: next to nothing waits for its {operator.parallelism} workers", *notes))
                attempt = Resolution("overprovisioned", name, changed[name], 0.0, snapshot.time)
                return ScalingDecision(changed, reason=reason), replace(memory, attempt=attempt)
        return ScalingDecision(reason="no backpressure, and no operator that is idle and may have fewer workers"), memory


def scaled_up(workers: int, backpressure: float) -> int:
    """Return the workers for an operator whose senders are held back that share of the time."""
    growth = MOST_GROWTH if backpressure >= 1 else min(backpressure / (1 - backpressure), MOST_GROWTH)
    return ceil(workers * (1 + growth) * (1 - 1e-9))


def held_back_by(snapshot: DataflowSnapshot, name: str) -> float:
    """Return the share of time that an operator holds its senders back: the most of any sender, or Heron's sum over its own
    instances.
    """
    senders = [snapshot.operator(edge.source) for edge in snapshot.inputs(name)]
    own = 0.0 if snapshot.outputs(name) else snapshot.operator(name).backpressure
    return max([own, *(sender.backpressure / sender.parallelism for sender in senders)])


def slow_operator(snapshot: DataflowSnapshot) -> str | None:
    """Return the operator that holds its senders back most and isn't held back itself, None without backpressure."""
    slow = {name: held_back_by(snapshot, name) for name in snapshot.order}
    candidates = [name for name in snapshot.order if slow[name] > LEAST_BACKPRESSURE and not _waits(snapshot, name)]
    return max(candidates, key=lambda name: (slow[name], _busy(snapshot.operator(name))), default=None)


def diagnose(operator: OperatorFigures) -> str:
    """Diagnose an operator by comparing its instances: `skew`, `slow instance` or `underprovisioned`.

    An operator whose records are dealt has no keys to place, so only more workers help it.
    """
    waiting = [one.queue_records for one in operator.instances if one.queue_records is not None]
    rates = [one.observed_processing_rate for one in operator.instances if one.observed_processing_rate is not None]
    if not operator.keyed or len(waiting) != operator.parallelism or operator.parallelism == 1 or max(waiting) <= OUTLIER * median(waiting):
        return "underprovisioned"
    busiest = waiting.index(max(waiting))
    if len(rates) == operator.parallelism and rates[busiest] > OUTLIER * median(rates):
        return "skew"
    return "slow instance"


def _waits(snapshot: DataflowSnapshot, name: str) -> bool:
    operator = snapshot.operator(name)
    return bool(snapshot.outputs(name)) and operator.backpressure / operator.parallelism > LEAST_BACKPRESSURE


def _busy(operator: OperatorFigures) -> float:
    return operator.queue_records / operator.parallelism


def _judged(snapshot: DataflowSnapshot, memory: DhalionMemory, kept_s: float) -> DhalionMemory:
    """Put the last attempt on the blacklist if it was carried out and didn't help; remove entries that are older than `kept_s`."""
    kept = tuple(entry for entry in memory.blacklist if snapshot.time - entry.time < kept_s)
    attempt = memory.attempt
    if attempt is None or snapshot.parallelism.get(attempt.operator) != attempt.workers:
        return DhalionMemory(None, kept)
    now = held_back_by(snapshot, attempt.operator)
    if attempt.diagnosis == "overprovisioned":
        failed = now > LEAST_BACKPRESSURE
    else:
        failed = slow_operator(snapshot) == attempt.operator and now > (1 - LEAST_RELIEF) * attempt.backpressure
    return DhalionMemory(None, (*kept, replace(attempt, time=snapshot.time)) if failed else kept)


def _listed(memory: DhalionMemory, diagnosis: str, operator: str, workers: int) -> bool:
    """Return True if the action failed before: that few workers or fewer for an idle operator, that many for a slow one."""
    return any(
        entry.diagnosis == diagnosis
        and entry.operator == operator
        and (workers <= entry.workers if diagnosis == "overprovisioned" else workers == entry.workers)
        for entry in memory.blacklist
    )
