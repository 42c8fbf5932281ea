"""The demand of every operator: the rates of the sources, carried through the dataflow as if nothing held records back.

One pass in topological order; the rates are not rounded on the way (Kalavri et al., OSDI 2018, equations 7 and 8):

    leaving(i)  = selectivity(i) * arriving(i),    selectivity = true output rate / true processing rate
    arriving(i) = offered(i) + sum over edges (j, i) of share(j, i) * leaving(j)

Invariant: a source's offer is the rate from outside, independent of backpressure; and rates stay within the bounds of a figure,
however many selectivities are multiplied.

>>> from .snapshot import DataflowSnapshot, Edge
>>> o2 = OperatorFigures("o2", 2, true_processing_rate=1000, true_output_rate=3800)
>>> o3 = OperatorFigures("o3", 3, true_processing_rate=2930, true_output_rate=600)
>>> operators = (OperatorFigures("source", 1, source_rate=2000), o2, o3)
>>> snapshot = DataflowSnapshot(operators, (Edge("source", "o2"), Edge("o2", "o3")))
>>> arrivals(snapshot)
{'source': 2000, 'o2': 2000.0, 'o3': 7600.0}
>>> whole_workers(workers_needed(snapshot, o3, 7600.0))
8
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from ....balancer.snapshot import LEAST, MAX_WORKERS, MOST
from .figures import OperatorFigures
from .snapshot import DataflowSnapshot

_ROUNDING = 1e-9

Rate = float | None
"""Records per second, None where it isn't known."""


def offered(operator: OperatorFigures) -> Rate:
    """Return the rate at which an operator is offered records from outside: its `source_rate`, or its reading rate plus its
    backlog's growth.
    """
    if operator.source_rate is not None:
        return operator.source_rate
    read = operator.observed_processing_rate if operator.true_processing_rate else operator.observed_output_rate
    if operator.backlog_growth is None or read is None:
        return None
    return max(0.0, read + operator.backlog_growth)


def backlog_over(seconds: float) -> Callable[[OperatorFigures], Rate]:
    """Return the additional rate that sources must read to work their backlog off in that time."""
    return lambda operator: operator.queue_records / seconds


def arrivals(snapshot: DataflowSnapshot, from_outside: Callable[[OperatorFigures], Rate] = offered) -> dict[str, Rate]:
    """Return the demand of every operator, in records per second. A measured `arrival_rate` replaces the sum of other operators'
    output.
    """
    arriving: dict[str, Rate] = {}
    for name in snapshot.order:
        operator, edges = snapshot.operator(name), snapshot.inputs(name)
        if not edges:
            arriving[name] = from_outside(operator)
        elif operator.arrival_rate is not None and from_outside is offered:
            arriving[name] = operator.arrival_rate
        else:
            inputs = [_leaving(snapshot.operator(edge.source), arriving[edge.source], edge.share) for edge in edges]
            extra = from_outside(operator) if operator.source_rate is not None else 0.0
            arriving[name] = _sum([*inputs, extra])
    return arriving


def selectivity(operator: OperatorFigures) -> Rate:
    """Return the records emitted per record processed; 1 for a source whose input isn't counted, None if unknown."""
    if operator.true_processing_rate and operator.true_output_rate is not None:
        return operator.true_output_rate / operator.true_processing_rate
    if operator.observed_processing_rate and operator.observed_output_rate is not None:
        return operator.observed_output_rate / operator.observed_processing_rate
    takes_input = operator.true_processing_rate or operator.observed_processing_rate
    return 1.0 if offered(operator) is not None and not takes_input else None


def workers_needed(snapshot: DataflowSnapshot, operator: OperatorFigures, arriving: Rate) -> Rate:
    """Return the unrounded number of workers that process `arriving`, or emit it in a source that counts no input. None if
    unknown.
    """
    if arriving == 0:
        return 0.0
    rate = operator.true_processing_rate or (None if snapshot.inputs(operator.name) else operator.true_output_rate)
    return None if arriving is None or not rate else arriving * operator.parallelism / rate


def whole_workers(needed: float) -> int:
    """Return the least whole number of sufficient workers, 1 to MAX_WORKERS; floating-point noise adds no worker."""
    return max(1, ceil(needed * (1 - _ROUNDING))) if needed < MAX_WORKERS else MAX_WORKERS


def bounded(rate: float) -> float:
    """Return a calculated rate within the bounds of a figure."""
    return 0.0 if rate < LEAST else min(rate, MOST)


def _leaving(operator: OperatorFigures, arriving: Rate, share: float) -> Rate:
    if arriving == 0:
        return 0.0
    factor = selectivity(operator)
    return None if arriving is None or factor is None else bounded(arriving * factor * share)


def _sum(rates: list[Rate]) -> Rate:
    known = [rate for rate in rates if rate is not None]
    return min(sum(known), MOST) if len(known) == len(rates) else None
