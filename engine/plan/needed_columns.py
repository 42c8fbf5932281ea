"""Finds the columns that the flow needs of each source.

From the sinks upwards every operator says which columns of its input it needs (`Operator.needs`). One that doesn't say, such as a
user's function, a join or a sink, needs all. So results, late records and dead letters are the same as those of a flow that reads
all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

from ..keys.unkeyed import shown
from ..needed import Needed
from ..operators.base import Operator
from ..source import Source
from .graph import Graph, Node


def reading_needed(graph: Graph) -> Graph:
    """Return the graph with sources that read only the columns that the flow needs."""
    wants: dict[int, list[Needed | None]] = {node.id: [] for node in graph}
    nodes: dict[int, Node] = {}
    for node in reversed(graph.ordered()):
        wanted = _all_of(wants[node.id])
        nodes[node.id] = node
        if isinstance(node.operator, Source) and wanted is not None:
            nodes[node.id] = replace(node, operator=node.operator.reading(wanted))
        for edge in node.inputs:
            wants[edge.node].append(_of_input(graph, node, wanted))
    return Graph(graph.name, {node.id: nodes[node.id] for node in graph})


def _of_input(graph: Graph, node: Node, wanted: Needed | None) -> Needed | None:
    if not isinstance(node.operator, Operator) or _has_side_stream(graph, node, node.operator):
        return None
    needed = node.operator.needs(wanted)
    if needed is None:
        return None
    keys = shown(node.keys or ())
    return needed.with_names(keys) if node.operator.combined() is None else needed.with_coded(keys)


def _all_of(wants: Sequence[Needed | None]) -> Needed | None:
    known = [needed for needed in wants if needed is not None]
    return reduce(or_, known) if known and len(known) == len(wants) else None


def _has_side_stream(graph: Graph, node: Node, operator: Operator) -> bool:
    """Return True if late records or dead letters of the node, unchanged rows of its input, have a reader."""
    return any(port not in operator.ports for _, port in graph.consumers(node))
