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
>>> Queueing().decide(DataflowSnapshot((a,), settings=PolicySettings(latency_target_ms=310)), None)[0].parallelism
{'A': 4}
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import ClassVar

from ...engine.errors import FlowError
from .base import Policy
from .bounds import largest, smallest, within_bounds
from .dataflow.demand import arrivals
from .dataflow.settings import PolicySettings
from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision
from .jackson import Station, sojourn, sojourns, time_under_way


class Queueing(Policy[None]):
    """Needs `latency_target_ms` or `processors`."""

    name: ClassVar[str] = "queueing"

    def start(self) -> None:
        return None

    def decide(self, snapshot: DataflowSnapshot, memory: None) -> tuple[ScalingDecision, None]:
        settings = snapshot.settings
        if settings.latency_target_ms is None and settings.processors is None:
            raise FlowError("policy `queueing` needs latency_target_ms, or processors: the number of workers to assign")
        stations, unknown = network(snapshot)
        if not stations:
            return ScalingDecision(reason="no operator's arrivals and true processing rate are known"), None
        from_outside = _from_outside(snapshot, stations)
        workers, note = _allocated(snapshot, stations, from_outside)
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


def _allocated(snapshot: DataflowSnapshot, stations: tuple[Station, ...], from_outside: float) -> tuple[list[int], str]:
    """Return the workers of each station, and a remark."""
    settings = snapshot.settings
    most = [largest(snapshot.operator(station.name), settings) for station in stations]
    least = [smallest(snapshot.operator(station.name), settings) for station in stations]
    workers = [min(max(station.fewest, low), high) for station, low, high in zip(stations, least, most, strict=True)]
    if settings.processors is not None and sum(workers) > settings.processors:
        return workers, f"{settings.processors} processors are too few: {sum(workers)} workers keep the queues from growing"
    if any(sojourn(station, count) == inf for station, count in zip(stations, workers, strict=True)):
        return workers, "the bounds leave too few workers: queues grow without end"
    if _unreachable(stations, from_outside, settings):
        return workers, f"{settings.latency_target_ms:g} ms can't be reached: serving the records alone takes longer"
    return _shared_out(stations, workers, most, from_outside, settings)


def _shared_out(
    stations: tuple[Station, ...], workers: list[int], most: list[int], from_outside: float, settings: PolicySettings
) -> tuple[list[int], str]:
    """Give each next worker to the station where it gains most, until that is enough; ties go to the first."""
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
    spare, target = settings.processors and settings.processors - sum(workers), settings.latency_target_ms
    while spare != 0 and (target is None or sum(now) * 1000 > target):
        if not queue or queue[0][0] >= 0:
            return workers, "no further worker helps within the bounds"
        _, at, now[at] = heappop(queue)
        workers[at] += 1
        spare = spare and spare - 1
        offer(at)
    return workers, ""


def _unreachable(stations: tuple[Station, ...], from_outside: float, settings: PolicySettings) -> bool:
    service = sum(station.arriving / from_outside / station.rate for station in stations)
    return settings.processors is None and settings.latency_target_ms is not None and service * 1000 >= settings.latency_target_ms
