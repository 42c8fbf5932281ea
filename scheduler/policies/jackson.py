"""A dataflow as an open Jackson network: the time that a record takes, given the workers of each operator.

Fu, Ding, Ma, Winslett, Yang, Zhang: DRS: Dynamic Resource Scheduling for Real-Time Analytics over Fast Streams, ICDCS 2015,
equations 1-3. Operator i is an M/M/k queue with arrival rate l, service rate m of one worker and k workers; with a = l / m and
the Erlang C formula,

    E[T](k) = sum over i of l(i) / l(0) * (C(k, a) / (k * m - l) + 1 / m)

where l(0) is the rate from outside and C the probability that a record has to wait.

>>> stations = (Station("A", 10, 4), Station("B", 25, 12), Station("C", 5, 1))
>>> round(time_under_way(stations, (3, 3, 6), 10), 5)
1.71327
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, inf

from ...balancer.snapshot import MAX_WORKERS


@dataclass(frozen=True, slots=True)
class Station:
    """An operator: the records per second that arrive, and the records per second that one worker serves."""

    name: str
    arriving: float
    rate: float

    @property
    def fewest(self) -> int:
        """The least number of workers with which the queue doesn't grow without end: floor(a) + 1, or as many as there can be."""
        load = self.arriving / self.rate
        return floor(load) + 1 if load < MAX_WORKERS else MAX_WORKERS


def erlang_c(workers: int, load: float) -> float:
    """Return the probability that a record waits, with `load` = arrival rate / service rate of one worker; 1 if the queue grows
    without end.
    """
    return _waits(workers, load, _erlang_b(workers, load))


def sojourn(station: Station, workers: int) -> float:
    """Return the seconds that a record waits and is served at a station."""
    return next(sojourns(station, workers))


def sojourns(station: Station, workers: int) -> Iterator[float]:
    """Yield `sojourn` with `workers` workers, with one more, and so on: each takes one step of the recursion instead of all."""
    load = station.arriving / station.rate
    blocked = _erlang_b(workers, load)
    while True:
        spare = workers * station.rate - station.arriving
        yield inf if spare <= 0 else _waits(workers, load, blocked) / spare + 1 / station.rate
        workers += 1
        blocked = load * blocked / (workers + load * blocked)


def time_under_way(stations: Sequence[Station], workers: Sequence[int], from_outside: float) -> float:
    """Return E[T]: seconds from a record's arrival until all its results are done; `workers[i]` are those of `stations[i]`."""
    return sum(station.arriving / from_outside * sojourn(station, count) for station, count in zip(stations, workers, strict=True))


def _erlang_b(workers: int, load: float) -> float:
    """Return the probability that a record is rejected without a queue, B(k) = load * B(k - 1) / (k + load * B(k - 1)): no
    factorial overflows.
    """
    blocked = 1.0
    for count in range(1, workers + 1):
        blocked = load * blocked / (count + load * blocked)
    return blocked


def _waits(workers: int, load: float, blocked: float) -> float:
    return 1.0 if load >= workers else blocked / (1 - load / workers * (1 - blocked))
