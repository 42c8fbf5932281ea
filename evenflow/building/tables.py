"""Makes the rows of a table from its changes: an aggregate that keeps the newest change of each key, and the rows behind it."""

from __future__ import annotations

from ..engine.aggregates.lists.top import top_of
from ..engine.aggregates.named.functions import max as largest
from ..engine.aggregates.named.functions import min as smallest
from ..engine.operators.aggregation.aggregate_running import AggregateRunning
from ..engine.operators.rows.table_rows import FIRST, LAST, NEWEST, TableRows
from ..engine.plan.graph import Graph, Input, Node
from ..engine.table_changes import OFFSET, PARTITION
from .aggregates import make_aggregate


def newest_changes(keys: tuple[str, ...]) -> AggregateRunning:
    """Make the aggregate with the newest change of each key, also of one that is deleted: an earlier change may still arrive."""
    newest = top_of(1, OFFSET, ties=False, columns=None)
    return make_aggregate(keys, {NEWEST: newest, FIRST: smallest(PARTITION), LAST: largest(PARTITION)}, "update")


def add_table(graph: Graph, source: Node, keys: tuple[str, ...]) -> Node:
    """Add the operators behind a source of a table's changes; return the node that emits the table's rows."""
    newest = graph.add(f"{source.name}.newest", newest_changes(keys), (Input(source.id),), keys)
    return graph.add(f"{source.name}.table", TableRows(keys), (Input(newest.id),))
