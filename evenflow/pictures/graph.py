"""Draws a flow: operators from left to right, each after its inputs; edges name the columns that partition them."""

from __future__ import annotations

from ..engine.keys.unkeyed import shown
from ..engine.plan.graph import Graph, Node
from ..engine.sink import Sink
from ..engine.source import Source
from .svg import BLUE, GREY, ORANGE, Picture, box, document, line, text

WIDE, HIGH, GAP, ROW = 7.2, 30.0, 70.0, 52.0
"""Pixels: width of a character, height of a box, distance of boxes, distance of rows."""


def graph_picture(graph: Graph) -> Picture:
    """Draw the logical plan."""
    nodes = graph.ordered()
    depth: dict[int, int] = {}
    for node in nodes:
        depth[node.id] = max((depth[edge.node] + 1 for edge in node.inputs), default=0)
    columns: dict[int, list[Node]] = {}
    for node in nodes:
        columns.setdefault(depth[node.id], []).append(node)
    places: dict[int, tuple[float, float, float]] = {}
    x, rows = 10.0, max((len(column) for column in columns.values()), default=1)
    for _, column in sorted(columns.items()):
        wide = max(len(node.name) for node in column) * WIDE + 20
        for row, node in enumerate(column):
            places[node.id] = x, 10 + ROW * (row + (rows - len(column)) / 2), wide
        x += wide + GAP
    parts = []
    for node in nodes:
        left, top, wide = places[node.id]
        end = isinstance(node.operator, (Source, Sink))
        parts += [
            box(left, top, wide, HIGH, ORANGE if end else BLUE, radius=HIGH / 2 if end else 4),
            text(left + wide / 2, top + HIGH / 2 + 4, node.name, anchor="middle"),
        ]
        for edge in node.inputs:
            before, above, width = places[edge.node]
            begin, finish = (before + width, above + HIGH / 2), (left, top + HIGH / 2)
            tip = [(left - 6, finish[1] - 4), finish, (left - 6, finish[1] + 4)]
            parts += [line([begin, finish], GREY), line(tip, GREY)]
            label = " ".join([*shown(node.keys or ()), *([edge.port] if edge.port != "out" else [])])
            if label:
                parts.append(text((begin[0] + finish[0]) / 2, (begin[1] + finish[1]) / 2 - 5, label, anchor="middle", color=GREY))
    return document(max(x - GAP + 10, 20), 20 + ROW * rows - (ROW - HIGH), parts)
