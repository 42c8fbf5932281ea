"""The check, before a job runs, that the columns of operators' inputs fit.

Only certain columns count: those of a function's results aren't known unless its `schema` says so, and those of files are known
once their source has started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa

from ..columns import UNKNOWN, Columns
from ..errors import FlowError
from ..operators.base import Operator
from ..sink import Sink
from ..source import Source
from ..weights import WEIGHT, WEIGHTS
from .graph import Graph, Input

Inputs = Mapping[str, Sequence[Columns]]
"""The known columns of each operator's inputs, by its name."""


def check_columns(graph: Graph, sources: Mapping[str, Source] = MappingProxyType({})) -> Inputs:
    """Return the known columns of each operator's inputs.

    `sources`: those that are read in place of the graph's, by their nodes' names. Raises FlowError, naming the operator, for
    inputs whose columns are known not to fit.
    """
    known: dict[int, Columns] = {}
    found: dict[str, Sequence[Columns]] = {}

    def columns_of(edge: Input) -> Columns:
        operator = graph.nodes[edge.node].operator
        ports = operator.ports if isinstance(operator, Operator) else ("out",)
        if edge.port == WEIGHTS:
            return known[edge.node].having({WEIGHT: pa.int64()})
        return known[edge.node] if edge.port in ports else UNKNOWN

    for node in graph.ordered():
        if isinstance(node.operator, Source):
            known[node.id] = sources.get(node.name, node.operator).known_columns()
        elif isinstance(node.operator, Operator):
            inputs = [columns_of(edge) for edge in node.inputs]
            found[node.name] = inputs
            problem = node.operator.problem(inputs)
            if problem is not None:
                raise FlowError(f"operator `{node.name}`: {problem}")
            known[node.id] = node.operator.known_columns(inputs)
        elif isinstance(node.operator, Sink):
            problem = node.operator.problem(columns_of(node.inputs[0]))
            if problem is not None:
                raise FlowError(f"operator `{node.name}`: {problem}")
    return found
