"""One operator of a simulated cluster: instances with rates, queues that hold numbers of records, and unevenly distributed keys.

Invariant: records are neither lost nor created: each pushed record was processed or waits.

>>> operator = OperatorState(ModelOperator("count", rate=100.0, parallelism=2, hot_keys=(0.5,)))
>>> operator.shares.tolist()
[0.75, 0.25]
>>> operator.push(40.0)
>>> operator.work(seconds=0.25, through=1.0), operator.queued
(35.0, 5.0)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...engine.errors import FlowError
from ...scheduler.policies.dataflow.figures import InstanceFigures, OperatorFigures
from ...scheduler.policies.jackson import Station, sojourn

Numbers = npt.NDArray[np.float64]

MOST_LOAD = 0.99
"""The utilisation up to which the waiting time is that of a queueing model; above it, that of the model's own queue."""


@dataclass(frozen=True, slots=True)
class ModelOperator:
    """An operator's parameters. `rate`: records/s of a single instance. `selectivity`: output records per input record. `demand`: a
    source's records/s by time.

    `overhead`: each additional instance takes this part of the first one's rate from all: rate(p) = rate / (1 + overhead * (p - 1)); 0
    scales linearly. `hot_keys`: the shares of the hottest keys in its records; the rest is spread evenly. A key is assigned to an instance
    by its number, until the operator is rebalanced. `queue_s`: seconds of work that fit into an instance's queue. `unseen`: the share of
    its time that an instance loses to effects that no measurement shows.
    """

    name: str
    rate: float
    parallelism: int = 1
    selectivity: float = 1.0
    demand: Callable[[float], float] | None = None
    overhead: float = 0.0
    hot_keys: tuple[float, ...] = ()
    queue_s: float = 1.0
    unseen: float = 0.0

    def rate_of(self, parallelism: int) -> float:
        """Return the true rate (records/s) of each of `parallelism` instances."""
        return self.rate / (1 + self.overhead * (parallelism - 1))


class OperatorState:
    """The present state of a model's operator, and its measurements since `forget`; `processed`: all records, since the start."""

    def __init__(self, spec: ModelOperator) -> None:
        if sum(spec.hot_keys) > 1 + 1e-9:
            raise FlowError(
                f"operator `{spec.name}`: hot_keys have {sum(spec.hot_keys):g} of the records: parts of a whole sum to 1 at most"
            )
        self.spec, self.parallelism = spec, spec.parallelism
        self.balanced = self.halted = False
        self.processed = 0.0
        self._queue: Numbers = np.zeros(spec.parallelism)
        self._resize(0.0)

    @property
    def queued(self) -> float:
        """The waiting records."""
        return float(self._queue.sum())

    @property
    def room(self) -> float:
        """The number of records that it takes before one of its queues is full; a source's backlog is outside, and unbounded."""
        if self.spec.demand is not None:
            return float("inf")
        limit = self.spec.rate_of(self.parallelism) * self.spec.queue_s
        used = self.shares > 0
        return max(0.0, float(((limit - self._queue[used]) / self.shares[used]).min()))

    def push(self, records: float) -> None:
        """Add records; each instance gets the share of its keys."""
        self._queue += records * self.shares

    def can_do(self, seconds: float) -> float:
        """Return the records that it would process in the next `seconds`."""
        return float(self._next(seconds).sum())

    def work(self, seconds: float, through: float) -> float:
        """Process for some time; `through`: the share for which there is credit. Return the records processed."""
        possible = self._next(seconds)
        done = possible * through
        rate = self.spec.rate_of(self.parallelism)
        self._queue = np.maximum(self._queue - done, 0.0)
        self._processed += done
        self.processed += float(done.sum())
        self._useful += done / rate
        self._blocked += (possible - done) / (rate * (1 - self.spec.unseen))
        self._waited += self._queue * seconds
        self._seconds += seconds
        return float(done.sum())

    def rescale(self, parallelism: int) -> None:
        """Change the number of instances; waiting records are distributed among the new instances."""
        self.parallelism = parallelism
        self._resize(self.queued)

    def rebalance(self) -> None:
        """Assign hot keys to the coldest instances, and the rest so that the load is as even as possible."""
        self.balanced = True
        self._resize(self.queued)

    def forget(self) -> None:
        """Forget the measurements up to now."""
        self._processed, self._useful = np.zeros(self.parallelism), np.zeros(self.parallelism)
        self._blocked, self._waited = np.zeros(self.parallelism), np.zeros(self.parallelism)
        self._seconds = 0.0

    def figures(self, time: float) -> OperatorFigures:
        """Return the measurements since `forget`."""
        spec, seconds = self.spec, max(self._seconds, 1e-9)
        instances = []
        for done, useful, blocked, waiting in zip(self._processed, self._useful, self._blocked, self._queue, strict=True):
            true = float(done / useful) if useful > 0 else None
            rate = float(done) / seconds
            instances.append(
                InstanceFigures(
                    true,
                    None if true is None else true * spec.selectivity,
                    rate,
                    rate * spec.selectivity,
                    float(waiting),
                    min(1.0, float(blocked) / seconds),
                )
            )
        source = {} if spec.demand is None else {"source_rate": spec.demand(time)}
        hottest = {"hottest_key_share": max(spec.hot_keys)} if spec.hot_keys else {}
        return OperatorFigures.summed(spec.name, instances, latency_ms=self._latency_ms(), **source, **hottest)

    def _latency_ms(self) -> float:
        """Return the latency of the slowest instance: its queue, and waiting and service by a queueing model while it isn't overloaded."""
        rates = self._processed / max(self._seconds, 1e-9)
        waiting = float(np.max(self._waited / np.maximum(self._processed, 1e-9), initial=0.0, where=self._processed > 0))
        rate = self.spec.rate_of(self.parallelism)
        busiest = min(float(rates.max()), MOST_LOAD * rate)
        return 1000 * (waiting + sojourn(Station(self.spec.name, busiest * self.parallelism, rate), self.parallelism))

    def _next(self, seconds: float) -> Numbers:
        rate = 0.0 if self.halted else self.spec.rate_of(self.parallelism) * (1 - self.spec.unseen)
        possible: Numbers = np.minimum(self._queue, rate * seconds)
        return possible

    def _resize(self, queued: float) -> None:
        self.shares = _shares(self.spec.hot_keys, self.parallelism, self.balanced)
        self._queue = queued * self.shares
        self.forget()


def _shares(hot_keys: tuple[float, ...], workers: int, balanced: bool) -> Numbers:
    """Return the share of each worker in the records, shape (workers,)."""
    shares = np.zeros(workers)
    for index, part in enumerate(sorted(hot_keys, reverse=True)):
        shares[int(shares.argmin()) if balanced else index % workers] += part
    rest = max(0.0, 1 - float(shares.sum()))
    if not balanced:
        return shares + rest / workers
    level = np.sort(shares)
    for coldest in range(1, workers + 1):
        filled = (rest + float(level[:coldest].sum())) / coldest
        if coldest == workers or filled <= level[coldest]:
            break
    return np.maximum(shares, filled)
