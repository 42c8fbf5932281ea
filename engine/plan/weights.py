"""Finds the streams of updates whose reader adds up rows with weights, and plans these.

From such a reader up to the aggregate that emits the updates, each operator is replaced by one that passes weights on. Other readers
of the same streams keep the plain updates: an operator between that both kinds of readers need is there twice. A flow without such a
reader is planned as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..errors import FlowError
from ..operators.aggregation.aggregate_running import AggregateRunning
from ..operators.aggregation.aggregate_weights import AggregateWeights
from ..operators.base import Operator
from ..operators.rows.changelog import Changelog
from ..operators.rows.filter import Filter
from ..sink import Sink
from ..weights import WEIGHTS
from .graph import Graph, Input, Node

SUFFIX = ".weights"
"""The suffix of the name of an operator's second copy, for rows with weights."""


def weighed_inputs(graph: Graph) -> frozenset[tuple[int, Input]]:
    """Return the edges that carry rows with weights, as the reader's node and its input."""
    found: set[tuple[int, Input]] = set()

    def follow(node: Node) -> None:
        for edge in node.inputs:
            updates = graph.updates_of(edge)
            if updates is not None and (node.id, edge) not in found:
                found.add((node.id, edge))
                if updates.origin != edge.node:
                    follow(graph.nodes[edge.node])

    for node in graph:
        if isinstance(node.operator, (AggregateRunning, Changelog)) or _reads_weights(graph, node):
            follow(node)
    return frozenset(found)


def _reads_weights(graph: Graph, node: Node) -> bool:
    """Return True for a sink that takes the rows of its input with weights."""
    if not isinstance(node.operator, Sink) or not node.operator.reads_weights:
        return False
    found = [graph.updates_of(edge) for edge in node.inputs]
    return all(updates is not None and updates.weighed for updates in found)


def with_weights(graph: Graph) -> Graph:
    """Return the graph with rows with weights where a reader adds them up.

    Raises FlowError for a filter that needs weights and has a reader that takes none.
    """
    edges = weighed_inputs(graph)
    if not edges:
        _check_filters(graph.nodes)
        return graph
    copies = _copies(graph, edges)

    def source_of(reader: int, edge: Input) -> Input:
        if (reader, edge) not in edges:
            return edge
        return Input(copies[edge.node].id, edge.port) if edge.node in copies else Input(edge.node, WEIGHTS)

    nodes: dict[int, Node] = {}
    for node in graph:
        inputs = tuple(source_of(node.id, edge) for edge in node.inputs)
        if node.id in copies:
            nodes[node.id] = node
            nodes[copies[node.id].id] = replace(copies[node.id], inputs=inputs)
        else:
            nodes[node.id] = replace(node, inputs=inputs)
    _remove_unread(nodes)
    _check_filters({node_id: node for node_id, node in nodes.items() if node_id in graph.nodes})
    for original, copy in copies.items():
        if original not in nodes:
            nodes[copy.id] = replace(nodes[copy.id], name=graph.nodes[original].name)
    read = {edge for node in nodes.values() for edge in node.inputs}
    for node in graph:
        if isinstance(node.operator, AggregateRunning):
            nodes[node.id] = replace(nodes[node.id], operator=_with_ports(graph, node, node.operator, edges, read))
    return Graph(graph.name, nodes)


def _copies(graph: Graph, edges: frozenset[tuple[int, Input]]) -> dict[int, Node]:
    """Return the copies of the operators between for rows with weights, by the original's node."""
    between = sorted({edge.node for _, edge in edges if not isinstance(graph.nodes[edge.node].operator, AggregateRunning)})
    copies: dict[int, Node] = {}
    for number, node_id in enumerate(between, max(graph.nodes) + 1):
        node = graph.nodes[node_id]
        operator = node.operator.weighed() if isinstance(node.operator, Operator) else None
        if operator is None:
            raise ValueError(f"operator `{node.name}` can't pass weights on")
        copies[node_id] = replace(node, id=number, name=f"{node.name}{SUFFIX}", operator=operator)
    return copies


def _check_filters(plain: Mapping[int, Node]) -> None:
    """Raise FlowError if one of these nodes, which read rows without weights, must read them by weight."""
    for node in plain.values():
        if isinstance(node.operator, Filter) and node.operator.by_weight:
            raise FlowError(
                f"operator `{node.name}`, {node.operator.describe()}: a row that has passed and is updated may have to be taken back, "
                'and the reader of these rows takes none back: write them to a table with a primary key (mode="upsert" in Python), '
                "aggregate them, call .changelog(), or group by a window"
            )


def _remove_unread(nodes: dict[int, Node]) -> None:
    """Remove the operators whose every reader reads the copy with weights."""
    while True:
        read = {edge.node for node in nodes.values() for edge in node.inputs}
        unread = [node.id for node in nodes.values() if node.id not in read and not isinstance(node.operator, Sink)]
        if not unread:
            return
        for node_id in unread:
            del nodes[node_id]


def _with_ports(
    graph: Graph, node: Node, operator: AggregateRunning, edges: frozenset[tuple[int, Input]], read: set[Input]
) -> AggregateRunning:
    """Return the aggregate with weights in its input, its output or both; as it is without any."""
    edge, weights = node.inputs[0], Input(node.id, WEIGHTS) in read
    reads = (node.id, edge) in edges
    if not reads and not weights:
        return operator
    rows = _rows(graph, edge) if reads else None
    origins = tuple(sorted(_origins(graph, edge))) if reads else ()
    plain = Input(node.id) in read
    return AggregateWeights(
        operator.keys, operator.functions, updates=operator.updates, rows=rows, origins=origins, plain=plain, weights=weights
    )


def _rows(graph: Graph, edge: Input) -> str:
    """Describe the rows of an edge, as far up as they have weights."""
    node, updates = graph.nodes[edge.node], graph.updates_of(edge)
    if updates is None:
        return "rows"
    if updates.origin == node.id or not isinstance(node.operator, Operator):
        return f"`{node.name}` by weight"
    above = " and ".join(_rows(graph, each) for each in node.inputs)
    port = "" if edge.port == "out" else f".{edge.port}"
    return f"{type(node.operator).__name__.lower()}({node.operator.describe()}){port} of {above}"


def _origins(graph: Graph, edge: Input) -> set[str]:
    node, updates = graph.nodes[edge.node], graph.updates_of(edge)
    if updates is None:
        return set()
    if updates.origin == node.id:
        return {node.name}
    return {name for each in node.inputs for name in _origins(graph, each)}
