"""What is offered against what gets through: the achieved part of the demand, by the sources and by each operator.

>>> from .figures import OperatorFigures
>>> from .snapshot import Edge
>>> source = OperatorFigures("source", 1, source_rate=300, observed_output_rate=240)
>>> count = OperatorFigures("count", 1, true_processing_rate=300, observed_processing_rate=240)
>>> snapshot = DataflowSnapshot((source, count), (Edge("source", "count"),))
>>> total_offered(snapshot), total_read(snapshot), got_through(snapshot)
(300, 240.0, 0.8)
"""

from __future__ import annotations

from .demand import arrivals, offered
from .snapshot import DataflowSnapshot


def total_offered(snapshot: DataflowSnapshot) -> float:
    """The records per second that all sources together are offered, as far as it is known."""
    return sum(offered(snapshot.operator(name)) or 0.0 for name in snapshot.sources)


def total_read(snapshot: DataflowSnapshot) -> float:
    """The part of the demand that the sources read (records/s); all of it where that wasn't measured."""
    total = 0.0
    for name in snapshot.sources:
        source = snapshot.operator(name)
        asked = offered(source) or 0.0
        read = source.observed_processing_rate if source.true_processing_rate else source.observed_output_rate
        total += asked if read is None else min(read, asked)
    return total


def got_through(snapshot: DataflowSnapshot) -> float:
    """The part of the demand that gets through, 0 to 1: of what sources are offered, or, if that is more, of what an operator should get.

    Where operators work off queues inside the dataflow the sources are held back too, but no operator processes less than the demand.
    """
    asked, processed = total_offered(snapshot), slowest_through(snapshot)
    read = min(1.0, total_read(snapshot) / asked) if asked else 1.0
    return read if processed is None else max(read, processed)


def slowest_through(snapshot: DataflowSnapshot) -> float | None:
    """The part of the demand, 0 to 1, that the slowest operator processes, None where none was measured."""
    arriving = arrivals(snapshot)
    measured = ((snapshot.operator(name).observed_processing_rate, arriving[name]) for name in snapshot.order if snapshot.inputs(name))
    return min((min(1.0, done / should) for done, should in measured if done is not None and should), default=None)
