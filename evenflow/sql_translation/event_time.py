"""The column of a stream that holds its event time: found at the source, or where `with_time` assigned it, and followed from there."""

from __future__ import annotations

from ..engine.operators.joins.lookup import Lookup
from ..engine.operators.rows.branch import Branch
from ..engine.operators.rows.cast import Cast
from ..engine.operators.rows.compute import Compute
from ..engine.operators.rows.explode import Explode
from ..engine.operators.rows.filter import Filter
from ..engine.operators.rows.project import Project
from ..engine.operators.rows.union import Union
from ..engine.operators.rows.with_time import WithTime
from ..engine.source import Source
from ..stream import Stream

_SAME = (Branch, Cast, Filter, Lookup, Explode)
"""Operators whose rows keep their columns and times."""


def event_time_column(stream: Stream) -> str | None:
    """Return the column whose values are the event times of the rows, None if none is known."""
    return _of_node(stream, stream.node.id)


def _of_node(stream: Stream, number: int) -> str | None:
    node = stream.flow.graph.nodes[number]
    operator = node.operator
    if isinstance(operator, Source):
        return operator.time_column
    if isinstance(operator, WithTime):
        return operator.time if isinstance(operator.time, str) else None
    above = {_of_node(stream, edge.node) for edge in node.inputs}
    found = next(iter(above)) if len(above) == 1 else None
    if found is None or isinstance(operator, (*_SAME, Union)):
        return found
    if isinstance(operator, Project):
        renamed = operator.rename.get(found, found) if operator.rename else found
        gone = found in operator.drop or (operator.select and found not in operator.select)
        return None if gone else renamed
    if isinstance(operator, Compute):
        return found if found in node.columns.types and found not in operator.computed else None
    return None
