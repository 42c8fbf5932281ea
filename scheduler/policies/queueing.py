"""Queueing: the fewest workers that keep a latency target, or the best use of a number of them, by a Jackson network.

DRS (Fu et al., ICDCS 2015, algorithm 1): every operator starts with floor(l / m) + 1 workers, the fewest with which its queue
doesn't grow without end; each further worker goes where it lowers E[T] (`jackson.py`) most. E[T] is convex in an operator's
workers: greedy is best. It ends when `processors` are assigned, or when E[T] is at most `latency_target_ms`.

Invariant: no operator has fewer workers than keep its queue from growing without end, unless bounds forbid it.

It assumes exponential times between records and of service: batches, windows and joins differ from that. If no number of workers
reaches the target, because serving a record takes longer, the reason says so, and the fewest stable workers are decided.

>>> from .dataflow.figures import OperatorFigures
>>> from .dataflow.settings import PolicySettings
>>> from .dataflow.snapshot import Edge
>>> a = OperatorFigures("A", 1, source_rate=10, true_processing_rate=4)
>>> QueueingPolicy().decide(DataflowSnapshot((a,), settings=PolicySettings(latency_target_ms=310)), None)[0].parallelism
{'A': 4}
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import ClassVar

from ...engine.errors import FlowError
from ..checks import given, whole
from .base import ScalingPolicy
from .bounds import largest, smallest, within_bounds
from .dataflow.demand import arrivals
from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision
from .jackson import Station, sojourn, sojourns, time_under_way


@dataclass(frozen=True, slots=True)
class QueueingPolicy(ScalingPolicy[None]):
    """A policy that assigns the fewest workers for a latency target, or makes the best use of a number of them.

    `processors` is the number of workers to assign; None: as many as the latency target takes, which it then needs.

    Raises FlowError, naming the setting, for impossible values.
    """

    name: ClassVar[str] = "queueing"

    processors: int | None = None

    def __post_init__(self) -> None:
        whole(self, 1, *given(self, "processors"))

    @property
    def needs_latency(self) -> bool:
        return self.processors is None

    def start(self) -> None:
        return None

    def decide(self, snapshot: DataflowSnapshot, memory: None) -> tuple[ScalingDecision, None]:
        if snapshot.settings.latency_target_ms is None and self.processors is None:
            raise FlowError("policy `queueing` needs latency_target_ms, or processors: the number of workers to assign")
        stations, unknown = network(snapshot)
        if not stations:
            return ScalingDecision(reason="no operator's arrivals and true processing rate are known"), None
        from_outside = _from_outside(snapshot, stations)
        workers, note = _allocated(snapshot, stations, from_outside, self.processors)
        wanted = {station.name: count for station, count in zip(stations, workers, strict=True)}
        changed, clipped = within_bounds(snapshot, wanted)
        expected = time_under_way(stations, workers, from_outside)
        before = time_under_way(stations, [snapshot.operator(station.name).parallelism for station in stations], from_outside)
        notes = [note, *clipped, *(f"{name} stays unchanged: its rates are not known" for name in unknown)]
        reason = f"a record is under way for {_time(expected)} with {sum(workers)} workers, {_time(before)} as it is"
        return ScalingDecision(changed, reason="; ".join([reason, *(text for text in notes if text)])), None


def network(snapshot: DataflowSnapshot) -> tuple[tuple[Station, ...], tuple[str, ...]]:
    """Return the operators as stations, and the names of operators without the necessary figures. Sources that count no input are
    no stations.

    The arrival rate is the demand carried through the dataflow, or the processed rate if that isn't known.
    """
    stations, unknown = [], []
    for name, arriving in arrivals(snapshot).items():
        operator = snapshot.operator(name)
        comes = operator.observed_processing_rate if arriving is None else arriving
        if operator.true_processing_rate and comes is not None:
            stations.append(Station(name, comes, operator.true_processing_rate / operator.parallelism))
        elif snapshot.inputs(name):
            unknown.append(name)
    return tuple(stations), tuple(unknown)


def _time(seconds: float) -> str:
    return "a time without end" if seconds == inf else f"{seconds * 1000:.2f} ms"


def _from_outside(snapshot: DataflowSnapshot, stations: tuple[Station, ...]) -> float:
    arriving = arrivals(snapshot)
    total = sum(arriving[name] or 0.0 for name in snapshot.sources)
    return total or max(station.arriving for station in stations) or 1.0


def _allocated(
    snapshot: DataflowSnapshot, stations: tuple[Station, ...], from_outside: float, processors: int | None
) -> tuple[list[int], str]:
    """Return the workers of each station, and a remark."""
    settings, target = snapshot.settings, snapshot.settings.latency_target_ms
    most = [largest(snapshot.operator(station.name), settings) for station in stations]
    least = [smallest(snapshot.operator(station.name), settings) for station in stations]
    workers = [min(max(station.fewest, low), high) for station, low, high in zip(stations, least, most, strict=True)]
    if processors is not None and sum(workers) > processors:
        return workers, f"{processors} processors are too few: {sum(workers)} workers keep the queues from growing"
    if any(sojourn(station, count) == inf for station, count in zip(stations, workers, strict=True)):
        return workers, "the bounds leave too few workers: queues grow without end"
    if processors is None and target is not None and _service_time(stations, from_outside) * 1000 >= target:
        return workers, f"{target:g} ms can't be reached: serving the records alone takes longer"
    return _shared_out(stations, workers, most, from_outside, target, None if processors is None else processors - sum(workers))


def _shared_out(
    stations: tuple[Station, ...], workers: list[int], most: list[int], from_outside: float, target: float | None, spare: int | None
) -> tuple[list[int], str]:
    """Give each next worker to the station where it gains most, until the target (ms) is kept or no worker is `spare`; ties go to
    the first.
    """
    courses = [sojourns(station, count) for station, count in zip(stations, workers, strict=True)]
    weights = [station.arriving / from_outside for station in stations]
    now = [weight * next(course) for weight, course in zip(weights, courses, strict=True)]
    queue: list[tuple[float, int, float]] = []

    def offer(at: int) -> None:
        if workers[at] < most[at]:
            after = weights[at] * next(courses[at])
            heappush(queue, (after - now[at], at, after))

    for at in range(len(stations)):
        offer(at)
    while spare != 0 and (target is None or sum(now) * 1000 > target):
        if not queue or queue[0][0] >= 0:
            return workers, "no further worker helps within the bounds"
        _, at, now[at] = heappop(queue)
        workers[at] += 1
        spare = spare and spare - 1
        offer(at)
    return workers, ""


def _service_time(stations: tuple[Station, ...], from_outside: float) -> float:
    """Return the seconds that serving a record takes, without waiting."""
    return sum(station.arriving / from_outside / station.rate for station in stations)
