"""Tells sources which rows the filters right behind them keep, so that they can skip pieces without any.

Only filters whose evaluation can't fail count: comparisons of columns with values, and their combinations. The filters stay where they
are, so a source may skip what it likes. A source with event time reads all, because the rows that a filter drops move event time on.
"""

from __future__ import annotations

from dataclasses import replace

from ..expressions.expression import Expression
from ..expressions.trees.tree import Call, Column, Literal, Tree
from ..operators.rows.filter import Filter
from ..operators.rows.project import Project
from ..source import Source
from .graph import Graph, Node

_HARMLESS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "is_null", "is_not_null", "is_in"})


def telling_sources(graph: Graph) -> Graph:
    """Return the graph with sources that know the conditions of the filters behind them."""
    nodes: dict[int, Node] = {}
    for node in graph:
        conditions = _conditions(graph, node) if isinstance(node.operator, Source) and not node.operator.timed else []
        nodes[node.id] = node
        if conditions:
            assert isinstance(node.operator, Source)
            nodes[node.id] = replace(node, operator=node.operator.where(conditions))
    return Graph(graph.name, nodes)


def _conditions(graph: Graph, node: Node) -> list[Tree]:
    """Return the conditions that each row of a source must meet to leave the filters behind it."""
    found: list[Tree] = []
    while len(readers := graph.consumers(node)) == 1:
        (node, port) = readers[0]
        operator = node.operator
        if port != "out":
            break
        if isinstance(operator, Project) and not operator.rename:
            continue
        if not isinstance(operator, Filter) or not isinstance(operator.predicate, Expression) or not _is_harmless(operator.predicate.tree):
            break
        found += _parts(operator.predicate.tree)
    return found


def _is_harmless(tree: Tree) -> bool:
    return not isinstance(tree, Call) or (tree.name in _HARMLESS and all(map(_is_harmless, tree.arguments)))


def _parts(tree: Tree) -> list[Tree]:
    """Return the conditions that are joined by "and"."""
    if isinstance(tree, Call) and tree.name == "and":
        return [part for each in tree.arguments for part in _parts(each)]
    return [tree]


def compared_column(condition: Tree) -> str | None:
    """Return the column that a condition compares with a value; None for another condition."""
    if not isinstance(condition, Call) or condition.name not in ("lt", "le", "gt", "ge", "eq"):
        return None
    sides = condition.arguments
    columns = [side.name for side in sides if isinstance(side, Column)]
    return columns[0] if len(columns) == 1 and any(isinstance(side, Literal) for side in sides) else None
