"""The offered load against the achieved one: the share of the demand that gets through, by the sources and by each operator.

>>> from .figures import OperatorFigures
>>> from .snapshot import Edge
>>> source = OperatorFigures("source", 1, source_rate=300, observed_output_rate=240)
>>> count = OperatorFigures("count", 1, true_processing_rate=300, observed_processing_rate=240)
>>> snapshot = DataflowSnapshot((source, count), (Edge("source", "count"),))
>>> total_offered(snapshot), total_read(snapshot), got_through(snapshot)
(300, 240, 0.8)
"""

from __future__ import annotations

from .demand import arrivals, offered
from .figures import OperatorFigures
from .snapshot import DataflowSnapshot


def total_offered(snapshot: DataflowSnapshot) -> float:
    """Return the records per second that all sources together are offered, where known."""
    return sum(offered(snapshot.operator(name)) or 0.0 for name in snapshot.sources)


def total_read(snapshot: DataflowSnapshot) -> float:
    """Return the part of the demand that the sources read (records/s); all of it where that wasn't measured."""
    return sum(_read(snapshot.operator(name)) for name in snapshot.sources)


def total_met(snapshot: DataflowSnapshot) -> float:
    """Return the satisfied part of the demand (records/s): rows that the sources read, and rows that never arrived.

    Unread rows are in the backlog, where the source knows that: a stream that begins, or pauses, is not held back.
    """
    return sum(_met(snapshot.operator(name)) for name in snapshot.sources)


def got_through(snapshot: DataflowSnapshot) -> float:
    """Return the share of the demand that gets through, 0 to 1: of the sources' offer, or, if larger, of the slowest operator's
    demand.

    Where operators work off queues inside the dataflow the sources are held back too, but no operator processes less than the
    demand.
    """
    demand, processed = total_offered(snapshot), slowest_through(snapshot)
    met = min(1.0, total_met(snapshot) / demand) if demand else 1.0
    return met if processed is None else max(met, processed)


def slowest_through(snapshot: DataflowSnapshot) -> float | None:
    """Return the share of the demand, 0 to 1, that the slowest operator processes, None where none was measured."""
    arriving = arrivals(snapshot)
    measured = ((snapshot.operator(name).observed_processing_rate, arriving[name]) for name in snapshot.order if snapshot.inputs(name))
    return min((min(1.0, done / should) for done, should in measured if done is not None and should), default=None)


def _read(source: OperatorFigures) -> float:
    demand = offered(source) or 0.0
    read = source.observed_processing_rate if source.true_processing_rate else source.observed_output_rate
    return demand if read is None else min(read, demand)


def _met(source: OperatorFigures) -> float:
    demand, read, growth = offered(source) or 0.0, _read(source), source.backlog_growth
    return read if growth is None else max(read, demand - max(0.0, growth))
