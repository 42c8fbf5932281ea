"""What is offered against what gets through: the achieved part of the demand, by the sources and by each operator.

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
    """The records per second that all sources together are offered, as far as it is known."""
    return sum(offered(snapshot.operator(name)) or 0.0 for name in snapshot.sources)


def total_read(snapshot: DataflowSnapshot) -> float:
    """The part of the demand that the sources read (records/s); all of it where that wasn't measured."""
    return sum(_read(snapshot.operator(name)) for name in snapshot.sources)


def total_met(snapshot: DataflowSnapshot) -> float:
    """The part of the demand that nothing is missing of (records/s): what the sources read, and what did not come at all.

    What a source was offered and has not read is in its backlog, where it knows that: a stream that begins, or pauses, is not held back.
    """
    return sum(_met(snapshot.operator(name)) for name in snapshot.sources)


def got_through(snapshot: DataflowSnapshot) -> float:
    """The part of the demand that gets through, 0 to 1: of what sources are offered, or, if that is more, of what an operator should get.

    Where operators work off queues inside the dataflow the sources are held back too, but no operator processes less than the demand.
    """
    asked, processed = total_offered(snapshot), slowest_through(snapshot)
    met = min(1.0, total_met(snapshot) / asked) if asked else 1.0
    return met if processed is None else max(met, processed)


def slowest_through(snapshot: DataflowSnapshot) -> float | None:
    """The part of the demand, 0 to 1, that the slowest operator processes, None where none was measured."""
    arriving = arrivals(snapshot)
    measured = ((snapshot.operator(name).observed_processing_rate, arriving[name]) for name in snapshot.order if snapshot.inputs(name))
    return min((min(1.0, done / should) for done, should in measured if done is not None and should), default=None)


def _read(source: OperatorFigures) -> float:
    asked = offered(source) or 0.0
    read = source.observed_processing_rate if source.true_processing_rate else source.observed_output_rate
    return asked if read is None else min(read, asked)


def _met(source: OperatorFigures) -> float:
    asked, read, growth = offered(source) or 0.0, _read(source), source.backlog_growth
    return read if growth is None else max(read, asked - max(0.0, growth))
