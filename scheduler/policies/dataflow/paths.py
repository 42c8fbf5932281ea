"""Ways through a dataflow: the slowest one to each sink, and what lies before an operator.

>>> from .figures import OperatorFigures
>>> from .snapshot import Edge
>>> operators = tuple(OperatorFigures(name, 1, latency_ms=ms) for name, ms in (("src", 1), ("a", 5), ("b", 9), ("sink", 2)))
>>> edges = (Edge("src", "a"), Edge("src", "b"), Edge("a", "sink"), Edge("b", "sink"))
>>> sink_latencies(DataflowSnapshot(operators, edges)), upstream(DataflowSnapshot(operators, edges), "a")
({'sink': 12.0}, {'src'})
"""

from __future__ import annotations

from .snapshot import DataflowSnapshot


def sink_latencies(snapshot: DataflowSnapshot) -> dict[str, float]:
    """Milliseconds from outside to each sink by the slowest way: the sum of what the operators on it add. Empty if none is known."""
    if all(operator.latency_ms is None for operator in snapshot.operators):
        return {}
    so_far: dict[str, float] = {}
    for name in snapshot.order:
        before = max((so_far[edge.source] for edge in snapshot.inputs(name)), default=0.0)
        so_far[name] = before + (snapshot.operator(name).latency_ms or 0.0)
    return {name: so_far[name] for name in snapshot.sinks}


def upstream(snapshot: DataflowSnapshot, name: str) -> set[str]:
    """All operators whose records reach `name`."""
    found: set[str] = set()
    for other in reversed(snapshot.order):
        if any(edge.target == name or edge.target in found for edge in snapshot.outputs(other)):
            found.add(other)
    return found
