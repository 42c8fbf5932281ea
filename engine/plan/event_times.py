"""The check, before a job runs, that windows and joins are over streams with event times.

Only certain cases count: operators that may assign times are taken to do so, and a source may not know if it has event times.
"""

from __future__ import annotations

from collections.abc import Collection

from ..errors import FlowError
from ..joins.within import Between
from ..operators.aggregation.aggregate_sessions import AggregateSessions
from ..operators.aggregation.aggregate_windows import AggregateWindows
from ..operators.aggregation.process_windows import ProcessWindows
from ..operators.joins.co_group import CoGroup
from ..operators.joins.join import Join
from ..operators.joins.join_asof import JoinAsof
from ..operators.joins.join_side import JoinSide
from ..operators.joins.window_join import WindowJoin
from ..operators.rows.branch import Branch
from ..operators.rows.broadcast import Broadcast
from ..operators.rows.cast import Cast
from ..operators.rows.explode import Explode
from ..operators.rows.filter import Filter
from ..operators.rows.flat_map import FlatMap
from ..operators.rows.key_by import KeyBy
from ..operators.rows.map import Map
from ..operators.rows.map_batches import MapBatches
from ..operators.rows.project import Project
from ..operators.rows.union import Union
from ..source import Source
from .graph import Graph

_NO_TIME_OF_THEIR_OWN = (Branch, Broadcast, Cast, Explode, Filter, FlatMap, JoinSide, KeyBy, Map, MapBatches, Project, Union)
"""Operators whose rows have the times of their input's rows, or none."""

_IN_WINDOWS = (AggregateSessions, AggregateWindows, CoGroup, ProcessWindows, WindowJoin)


def check_event_times(graph: Graph) -> Collection[int]:
    """Return the nodes whose rows certainly have no event time.

    Raises FlowError for an operator that needs event times and reads a source without.
    """
    untimed: dict[int, str] = {}
    for node in graph.ordered():
        operator = node.operator
        above = next((untimed[edge.node] for edge in node.inputs if edge.node in untimed), None)
        if isinstance(operator, Source) and operator.timed is False:
            untimed[node.id] = node.name
        elif above is not None and isinstance(operator, _NO_TIME_OF_THEIR_OWN):
            untimed[node.id] = above
        elif above is not None and _needs(operator):
            what = "has windows" if isinstance(operator, _IN_WINDOWS) else "joins by time"
            raise FlowError(
                f"operator `{node.name}` {what}, but the rows of `{above}` have no event time: say event_time=... where you read it, "
                "or assign it behind that by with_time"
            )
    return untimed.keys()


def _needs(operator: object) -> bool:
    return isinstance(operator, (*_IN_WINDOWS, JoinAsof)) or (isinstance(operator, Join) and isinstance(operator.within, Between))
