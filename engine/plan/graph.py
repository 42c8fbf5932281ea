"""The logical graph: the dataflow as the user wrote it, a node per operator.

A node's inputs name earlier nodes, so the graph that the API builds has no cycle; `Graph.ordered` checks it for graphs built by
hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..columns import UNKNOWN, Columns
from ..errors import FlowError
from ..functions.error_policy import DEAD_LETTERS
from ..operators.aggregation.aggregate_running import AggregateRunning
from ..operators.aggregation.aggregate_windows import AggregateWindows
from ..operators.base import Operator
from ..operators.function import FunctionOperator
from ..operators.rows.broadcast import Broadcast
from ..operators.rows.table_rows import TableRows
from ..sink import Sink
from ..source import Source
from ..updates import Updates
from .resources import Resources
from .worker_bounds import UNBOUND, WorkerBounds

_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Input:
    """An input: the records that node `node` emits on `port`."""

    node: int
    port: str = "out"


@dataclass(slots=True)
class Node:
    """An operator, a source or a sink of the flow.

    `keys`: the columns by which its input is partitioned, None if it takes any records. `parallelism`: None for the flow's
    default; `bounds`: limits for automatic scaling. `updates`: the updates that it emits, None for append-only rows. `columns`:
    the columns that it emits and that were known when it was added. `resources`: of each of its workers, None if it names none.
    """

    id: int
    name: str
    operator: Operator | Source | Sink
    inputs: tuple[Input, ...] = ()
    keys: tuple[str, ...] | None = None
    parallelism: int | None = None
    named: bool = False
    bounds: WorkerBounds = UNBOUND
    updates: Updates | None = None
    columns: Columns = UNKNOWN
    resources: Resources | None = None


@dataclass(slots=True)
class Graph:
    """The nodes of a flow by id, in the order in which they were added."""

    name: str
    nodes: dict[int, Node] = field(default_factory=dict)

    def add(
        self, name: str, operator: Operator | Source | Sink, inputs: tuple[Input, ...] = (), keys: tuple[str, ...] | None = None
    ) -> Node:
        """Add a node and return it; a name that is taken gets a number behind it (`map_2`).

        Raises FlowError for an operator whose input is a stream of updates and must not be, and for inputs whose columns are
        known not to fit.
        """
        self.check_updates(name, operator, inputs)
        taken = {node.name for node in self.nodes.values()}
        unique, count = name, 1
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        known = [self.columns_of(edge) for edge in inputs]
        problem = operator.problem(known) if isinstance(operator, Operator) and operator.checked_at_once else None
        if isinstance(operator, Sink):
            problem = next(filter(None, map(operator.problem_of, map(self.updates_of, inputs))), None)
        if problem is not None:
            raise FlowError(f"operator `{unique}`: {problem}")
        node = Node(len(self.nodes), unique, operator, inputs, keys)
        if isinstance(operator, Source):
            node.parallelism, node.columns = operator.parallelism, operator.known_columns()
        elif isinstance(operator, Operator):
            updates = operator.changes([self.updates_of(edge) for edge in inputs])
            node.columns = operator.known_columns(known)
            if updates is not None and updates.origin is None:
                node.updates = replace(updates, origin=node.id)
            elif updates is not None:
                node.updates = replace(updates, weighed=operator.weighed() is not None and self._all_weighed(inputs))
        self.nodes[node.id] = node
        return node

    def rename(self, node: Node, name: str) -> None:
        """Give a node the user's name.

        Raises FlowError if it is not a valid name, or the user has given it to another operator.
        """
        check_name(name, "operator")
        for other in self.nodes.values():
            if other.name != name or other is node:
                continue
            if other.named:
                raise FlowError(f"two operators of the flow `{self.name}` are named `{name}`: choose another name for one of them")
            other.name = f"{name}_{other.id}"
        node.name, node.named = name, True

    def updates_of(self, edge: Input) -> Updates | None:
        """Return the updates that an input gets, None for append-only rows: side outputs carry unchanged rows."""
        above = self.nodes.get(edge.node)
        if above is None or not isinstance(above.operator, Operator) or edge.port not in above.operator.ports:
            return None
        return above.updates

    def columns_of(self, edge: Input) -> Columns:
        """Return the columns of an input that were known when its operator was added."""
        above = self.nodes.get(edge.node)
        if above is None or (isinstance(above.operator, Operator) and edge.port not in above.operator.ports) or edge.port == DEAD_LETTERS:
            return UNKNOWN
        return above.columns

    def check_updates(self, name: str, operator: Operator | Source | Sink, inputs: tuple[Input, ...]) -> None:
        """Raise FlowError, with remedies, if one of `inputs` is a stream of updates and the operator can't take updates."""
        if isinstance(operator, Source):
            return
        for edge in inputs:
            updates = self.updates_of(edge)
            if updates is None or updates.origin is None:
                continue
            if updates.deletions and not (updates.weighed and _sees_deletions(operator)):
                raise FlowError(f"{_over_deletions(name, updates, operator)}{self._no_weights(operator, edge)}")
            if isinstance(operator, Operator) and not operator.takes_updates and not (updates.weighed and operator.reads_weights):
                problem = _over_updates(name, updates, self.nodes[updates.origin])
                raise FlowError(f"{problem}{self._no_weights(operator, edge)}")

    def refusing(self, node: Node) -> Node:
        """Return the node whose refused records are the dead letters of `node`: for the rows of a table, its source."""
        if not isinstance(node.operator, TableRows):
            return node
        newest = self.nodes[node.inputs[0].node]
        return self.nodes[newest.inputs[0].node]

    def _all_weighed(self, inputs: tuple[Input, ...]) -> bool:
        return all(updates is None or updates.weighed for updates in map(self.updates_of, inputs))

    def _no_weights(self, operator: Operator | Sink, edge: Input) -> str:
        """Describe, for an error, what keeps a running aggregate over updates from reading rows with weights."""
        if not isinstance(operator, AggregateRunning):
            return ""
        node, refused = self.nodes[edge.node], operator.unweighed
        while node.updates is not None and not node.updates.weighed and node.updates.origin != node.id:
            above = next((e for e in node.inputs if (updates := self.updates_of(e)) is not None and not updates.weighed), None)
            if above is None:
                return (
                    f". An aggregate can take back the rows that were replaced, but not behind `{node.name}`: only select, drop, rename, "
                    'cast, explode, union, and filter, branch, map, flat_map and key_by with a function (no class) and on_error="stop" '
                    "pass on which rows those are"
                )
            node = self.nodes[above.node]
        if node.updates is not None and node.updates.weighed:
            names = ", ".join(f"{name} ({operator.functions[name].describe()})" for name in refused)
            return f". An aggregate can take back the rows that were replaced, but these can't: {names}"
        return ""

    def consumers(self, node: Node) -> list[tuple[Node, str]]:
        """Return the readers of the node's output, and the port of each."""
        return [(other, edge.port) for other in self.nodes.values() for edge in other.inputs if edge.node == node.id]

    def ordered(self) -> list[Node]:
        """Return the nodes, every one after its inputs. Raises FlowError for a cycle or an unknown input."""
        done: dict[int, Node] = {}
        path: list[int] = []

        def visit(node_id: int) -> None:
            if node_id in done:
                return
            if node_id not in self.nodes:
                raise FlowError(f"the flow `{self.name}` reads from a node that it does not have (id {node_id})")
            if node_id in path:
                names = " -> ".join(self.nodes[i].name for i in [*path[path.index(node_id) :], node_id])
                raise FlowError(f"the flow `{self.name}` has a cycle: {names}")
            path.append(node_id)
            for edge in self.nodes[node_id].inputs:
                visit(edge.node)
            path.pop()
            done[node_id] = self.nodes[node_id]

        for node_id in self.nodes:
            visit(node_id)
        return list(done.values())

    def check(self) -> None:
        """Raise FlowError unless the graph can run: it has a source and a sink, and every stream ends in a sink."""
        if not self.nodes:
            raise FlowError(f"the flow `{self.name}` is empty: begin with flow.read(...)")
        ordered = self.ordered()
        for node in ordered:
            if isinstance(node.operator, Source) == bool(node.inputs):
                raise FlowError(f"operator `{node.name}` has {len(node.inputs)} inputs: only sources have none")
            if isinstance(node.operator, Broadcast) and not self.consumers(node):
                raise FlowError(f"the broadcast stream `{node.name}` has no reader: pass it to .process(function, rules), or remove it")
            if not isinstance(node.operator, Sink) and not self.consumers(node):
                raise FlowError(f"the output of operator `{node.name}` goes nowhere: end the stream with .write(...)")
            lost = self._lost_port(node)
            if lost is not None:
                raise FlowError(f"the rows of operator `{node.name}` on its port `{lost}` go nowhere: write both streams, or use filter")
            if self._loses_dead_letters(node):
                raise FlowError(
                    f"the dead letters of operator `{node.name}` go nowhere: write its stream's .dead_letters to a sink, "
                    'or say on_error="skip"'
                )
            if node.parallelism is not None and node.parallelism < 1:
                raise FlowError(f"operator `{node.name}`: parallelism {node.parallelism} is less than 1")

    def _lost_port(self, node: Node) -> str | None:
        """Return a port without a reader, if the operator has several."""
        if not isinstance(node.operator, Operator) or len(node.operator.ports) == 1:
            return None
        read = {port for _, port in self.consumers(node)}
        return next((port for port in node.operator.ports if port not in read), None)

    def _loses_dead_letters(self, node: Node) -> bool:
        operator = node.operator
        wanted = isinstance(operator, (FunctionOperator, Source)) and operator.on_error == "dead_letter"
        return wanted and all(port != DEAD_LETTERS for _, port in self.consumers(node))

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())


def check_name(name: str, what: str) -> None:
    """Raise FlowError unless `name` can name an actor, a metric and a file."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FlowError(f"{what} name {name!r}: use letters, digits, `_`, `.` and `-` only")


def _sees_deletions(operator: Operator | Sink) -> bool:
    return operator.reads_weights if isinstance(operator, Sink) else operator.sees_deletions


def _over_deletions(name: str, updates: Updates, operator: Operator | Sink) -> str:
    """Return the error of an operator or a sink that would not see that rows of a table are deleted, with remedies."""
    what = f"operator `{name}`" if isinstance(operator, Sink) else f".{name}()"
    key = f" (updates of {', '.join(updates.key)})" if updates.key else ""
    return (
        f"{what} can't take the changes of a table{key}: it would not see which rows are replaced or deleted. Aggregate the rows "
        'first, write them with write_sql or write_kafka, mode="upsert" and no version=, or take .changelog(), whose rows say insert or '
        "delete"
    )


def _over_updates(name: str, updates: Updates, origin: Node) -> str:
    """Return the error of an operator over the updates of `origin`, with remedies."""
    assert isinstance(origin.operator, Operator)
    key, final = ", ".join(updates.key or ()), 'emit="final"'
    if isinstance(origin.operator, AggregateWindows):
        what, out = "each key and window", f"say {final} in `{origin.name}`, without lateness=,"
    else:
        what = "each key"
        out = f'say {final} in `{origin.name}`, or aggregate there in windows, as in .window(ef.tumbling("1m")).aggregate(...),'
    return (
        f".{name}() can't take a stream of updates{f' of {key}' if key else ''}: operator `{origin.name}` emits the row of {what} again "
        f"whenever it changes, and .{name}() would count it each time. To count the last row of {what} only, {out} or keep it in a "
        "stateful_map or process"
    )
