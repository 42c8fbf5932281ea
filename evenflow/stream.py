"""Streams: the API for writing a dataflow.

Every method adds an operator and returns the stream of its output. Nothing runs before `Dataflow.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, overload

from .building.aggregates import make_aggregate, make_window_aggregate
from .building.broadcasts import make_broadcast, with_broadcast
from .building.columns import keys_after, keys_with, merged
from .building.joins import co_group, co_process, join, join_asof
from .building.patterns import make_match_pattern
from .building.row_operators import make_deduplicate, make_drop, make_key_by, make_rename, make_select, make_typed, make_with_columns
from .building.stateful_operators import make_process, make_stateful_map, make_stateful_map_columns
from .building.windows import AnyWindows, check_windows, make_window_process
from .engine.aggregates.base import AggregateFunction
from .engine.errors import FlowError
from .engine.expressions.expression import Expression
from .engine.functions.error_policy import OnError
from .engine.functions.keyed_function import CoKeyedFunction, KeyedFunction
from .engine.functions.rows_encoder import SchemaLike
from .engine.joins.join_columns import How
from .engine.joins.sides import LEFT, RIGHT
from .engine.joins.within import Always, Between
from .engine.keys.unkeyed import UNKEYED
from .engine.operators.aggregation.aggregate_rows import AggregateRows
from .engine.operators.aggregation.process_windows import WindowFunction
from .engine.operators.base import Operator
from .engine.operators.joins.co_group import CoGroupFunction
from .engine.operators.joins.join_side import JoinSide
from .engine.operators.keyed import KeyedOperator
from .engine.operators.processing.stateful_map_columns import ColumnsFunction
from .engine.operators.rows.broadcast import Broadcast
from .engine.operators.rows.compute import Compute
from .engine.operators.rows.key_by import KeyBy
from .engine.operators.rows.project import Project
from .engine.operators.rows.union import Union
from .engine.operators.two_inputs import LATE
from .engine.patterns.pattern import Skip
from .engine.patterns.step import Step
from .engine.plan.graph import Input, Node
from .engine.plan.worker_bounds import WorkerBounds
from .engine.time.duration import Duration
from .engine.time.sessions import SessionWindows
from .engine.time.windows import Windows
from .engine.typed_rows.row_type import RowType
from .transformations import C, Flow, N, R, Transformations

T = TypeVar("T")
AnyStream = TypeVar("AnyStream", bound="Stream[Any]")


class MissingMethodError(FlowError, AttributeError):
    """The lack of a method that another kind of stream has; the message says how to get that stream."""


class Stream(Transformations["Stream[R]", "Stream[dict[str, Any]]", "Stream[dict[str, Any]]", R]):
    """A stream of rows. Functions get a row as a dict from column name to value, or as an object of the class `R` (`typed`)."""

    def _on(self, node: Node, rows: RowType | None = None) -> Stream:
        return _of(Stream(self.flow, node), rows)

    def _same(self, node: Node, port: str = "out") -> Stream[R]:
        return _of(Stream[R](self.flow, node, port), self.row_type)

    @overload
    def map(self, function: Callable[[R], N], *, schema: None = None, on_error: OnError = "stop") -> Stream[N]: ...
    @overload
    def map(self, function: Callable[[R], Any], *, schema: type[C], on_error: OnError = "stop") -> Stream[C]: ...
    @overload
    def map(self, function: Callable[[R], Any], *, schema: SchemaLike = None, on_error: OnError = "stop") -> Stream: ...
    def map(self, function: Callable[[R], Any], *, schema: Any = None, on_error: OnError = "stop") -> Stream[Any]:
        return super().map(function, schema=schema, on_error=on_error)

    @overload
    def flat_map(self, function: Callable[[R], Iterable[N]], *, schema: None = None, on_error: OnError = "stop") -> Stream[N]: ...
    @overload
    def flat_map(self, function: Callable[[R], Iterable[Any]], *, schema: type[C], on_error: OnError = "stop") -> Stream[C]: ...
    @overload
    def flat_map(self, function: Callable[[R], Iterable[Any]], *, schema: SchemaLike = None, on_error: OnError = "stop") -> Stream: ...
    def flat_map(self, function: Callable[[R], Iterable[Any]], *, schema: Any = None, on_error: OnError = "stop") -> Stream[Any]:
        return super().flat_map(function, schema=schema, on_error=on_error)

    def typed(self, cls: type[C], *, on_error: OnError = "stop") -> Stream[C]:
        """Give functions from here on each row as an object of `cls`: a dataclass, NamedTuple, TypedDict, msgspec.Struct or Pydantic model.

        The columns must be the fields of the class, in any order, and of their types. That is checked now if the columns are known, else
        at the first batch. A value that a field doesn't allow, such as a null, is refused: `on_error` is as for `map`. A Pydantic model
        validates and converts each row here, and only here.

        `filter`, `branch`, `key_by`, `deduplicate`, `with_time` and `union` keep the class; methods that change columns give dicts again.
        A function that is annotated to return such a class makes columns of its fields (`map`, `flat_map`, `map_async`); the results of
        `map` and `flat_map` are rows of that class.

        >>> from dataclasses import dataclass
        >>> import evenflow as ef
        >>> @dataclass(slots=True)
        ... class Bid:
        ...     item: str
        ...     price: float
        >>> flow, rows = ef.Dataflow("bids"), []
        >>> bids = flow.read(ef.from_items([{"item": "tea", "price": 3.0}, {"item": "milk", "price": 0.5}])).typed(Bid)
        >>> _ = bids.filter(lambda bid: bid.price > 1).write(ef.to_list(rows))
        >>> _ = flow.run(runtime="local").wait()
        >>> rows
        [{'item': 'tea', 'price': 3.0}]
        """
        return cast("Stream[C]", self._then("typed", make_typed(cls, on_error)))

    def _side(self, node: Node, port: str) -> Stream:
        return Stream(self.flow, node, port)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not hasattr(KeyedStream, name):
                raise AttributeError(f"a Stream has no attribute {name!r}")
            total = ", or .window(...).aggregate(...) for one result over all rows of each window" if name == "aggregate" else ""
            example = f'rows.key_by("user").{name}(...)'
            raise MissingMethodError(f".{name}(...) needs a keyed stream: call key_by first, for example {example}{total}")

    def union(self, *others: Stream[R]) -> Stream[R]:
        """Merge the rows of this stream and the others, in the order of their arrival; all must have the same columns.

        Rows of a class must be of one class.
        """
        for other in others:
            if not isinstance(other, Stream):
                raise FlowError(f"union({other!r:.200}): expected streams, for example a.union(b, c)")
            if other.flow is not self.flow:
                raise FlowError(f"union of streams of two flows, `{self.flow.name}` and `{other.flow.name}`: read both in one flow")
            if other.row_type != self.row_type:
                kinds = " and ".join("dicts" if each is None else each.name for each in (self.row_type, other.row_type))
                raise FlowError(f"union of rows of two classes, {kinds}: call .typed(...) with one class on each stream before")
        inputs = tuple(Input(s.node.id, s.port) for s in (self, *others))
        return self._same(self.flow.graph.add("union", Union(), inputs))

    def key_by(self, *keys: str | Callable[[R], Any], column: str = "key") -> KeyedStream[R]:
        """Partition by one or several columns, or by `function(row)`, whose value is added as the column `column`.

        A null is a key like any other.
        """
        by = make_key_by(keys, column, self.row_type)
        return KeyedStream(self._same(self._add("key_by", by)), (column,)) if isinstance(by, KeyBy) else KeyedStream(self, by)

    def window(self, windows: AnyWindows) -> WindowedStream:
        """Cut the whole stream into windows, without keys: one result for each, over all rows.

        Every worker of this stream combines its own rows first. One worker computes the results, unless you set `.parallelism(n)`, and
        more would have nothing to do. By default, row-by-row operators that follow run in that worker, too.

        >>> import evenflow as ef
        >>> flow, out = ef.Dataflow("all"), []
        >>> rows = flow.read(ef.from_items([{"ts": 0}, {"ts": 70}, {"ts": 130}], event_time="ts", unit="s"))
        >>> _ = rows.window(ef.tumbling("2m")).aggregate(n=ef.count()).write(ef.to_list(out))
        >>> _ = flow.run(runtime="local").wait()
        >>> [(row["window_start"].minute, row["n"]) for row in out]
        [(0, 2), (2, 1)]
        """
        checked = check_windows(windows)
        return WindowedStream(_in_time_of(self, checked), UNKEYED, checked)

    def deduplicate(self, *columns: str, ttl: Duration | None = None) -> Stream[R]:
        """Keep the first row to arrive for each combination of values in these columns; a null is a value like any other.

        With `ttl` a row passes again if its event time is at least `ttl` later than that of the last one that passed, and the state is
        deleted after that time; a late row may then pass a second time. Without it, a combination is kept for ever. The state is a keyed
        state like any other.

        >>> import evenflow as ef
        >>> flow, rows = ef.Dataflow("once"), []
        >>> clicks = flow.read(ef.from_items([{"user": 1, "t": 0}, {"user": 1, "t": 5}, {"user": 1, "t": 12}], event_time="t"))
        >>> _ = clicks.deduplicate("user", ttl="10ms").write(ef.to_list(rows))
        >>> _ = flow.run(runtime="local").wait()
        >>> [row["t"] for row in rows]
        [0, 12]
        """
        operator = make_deduplicate((), columns, ttl)
        return self._same(keyed_node(self, "deduplicate", operator, operator.keys).node)

    def broadcast(self, *columns: str, delete: Expression | None = None, version: str | None = None) -> BroadcastStream:
        """Give every row to every worker of the operators that read it: `.process(function, rules)` of keyed streams.

        Each worker keeps the newest row of each combination of values in `columns`; a row for which the condition `delete` is true removes
        it. The newest row is the last one to arrive, or the one with the highest value in the column `version`. One worker puts the rows in
        one order, so all workers keep the same ones. They are in checkpoints, and workers that join get them. They should fit into each
        worker's memory.

        >>> import evenflow as ef
        >>> class Flag(ef.KeyedFunction):
        ...     paid = ef.list_state()
        ...     def on_row(self, key, row, context):
        ...         self.paid.append(row["amount"])
        ...         context.timer(context.time)
        ...     def on_timer(self, key, time, context):
        ...         for name, rule in context.broadcast.items():
        ...             yield {"account": key, "rule": name, "paid": sum(amount > rule["over"] for amount in self.paid)}
        >>> flow, out = ef.Dataflow("fraud"), []
        >>> given = [{"name": "big", "over": 500, "ts": 0}, {"name": "old", "over": 9, "ts": 0}, {"name": "old", "over": None, "ts": 1}]
        >>> rules = flow.read(ef.from_items(given, event_time="ts")).broadcast("name", delete=ef.col("over").is_null())
        >>> payments = flow.read(ef.from_items([{"account": "a", "amount": 900, "ts": 5}], event_time="ts"))
        >>> _ = payments.key_by("account").process(Flag(), rules).write(ef.to_list(out))
        >>> _ = flow.run(runtime="local").wait()
        >>> out
        [{'account': 'a', 'rule': 'big', 'paid': 1}]
        """
        operator = make_broadcast(columns, delete, version, self.flow.graph.updates_of(Input(self.node.id, self.port)))
        node = self._add("broadcast", operator)
        node.parallelism, node.bounds = 1, WorkerBounds(fixed=True)
        return BroadcastStream(self.flow, node)


class KeyedStream(Transformations["KeyedStream[R]", "KeyedStream[dict[str, Any]]", "Stream[dict[str, Any]]", R]):
    """A stream partitioned by key: every record of a key reaches the same worker, in order per channel.

    `keys`: the key columns. It has the methods of `Stream` that work row by row. Their result is keyed by the same columns of the new
    rows, so a function must keep them; `rename` renames them.

    >>> import evenflow as ef
    >>> flow, rows = ef.Dataflow("keyed"), []
    >>> words = flow.read(ef.from_items(["a", "b", "a"])).key_by("item")
    >>> counts = words.filter(lambda row: row["item"] != "b").rename(item="word").aggregate(n=ef.count(), emit="final")
    >>> _ = counts.write(ef.to_list(rows))
    >>> _ = flow.run(runtime="local").wait()
    >>> rows
    [{'word': 'a', 'n': 2}]
    """

    def __init__(self, stream: Stream[R], keys: tuple[str, ...]) -> None:
        super().__init__(stream.flow, stream.node, stream.port)
        self._stream, self.keys, self.row_type = stream, keys, stream.row_type

    def _on(self, node: Node, rows: RowType | None = None) -> KeyedStream:
        return KeyedStream(_of(Stream(self.flow, node), rows), self.keys)

    def _same(self, node: Node, port: str = "out") -> KeyedStream[R]:
        return KeyedStream(_of(Stream[R](self.flow, node, port), self.row_type), self.keys)

    @overload
    def map(self, function: Callable[[R], N], *, schema: None = None, on_error: OnError = "stop") -> KeyedStream[N]: ...
    @overload
    def map(self, function: Callable[[R], Any], *, schema: type[C], on_error: OnError = "stop") -> KeyedStream[C]: ...
    @overload
    def map(self, function: Callable[[R], Any], *, schema: SchemaLike = None, on_error: OnError = "stop") -> KeyedStream: ...
    def map(self, function: Callable[[R], Any], *, schema: Any = None, on_error: OnError = "stop") -> KeyedStream[Any]:
        return super().map(function, schema=schema, on_error=on_error)

    @overload
    def flat_map(self, function: Callable[[R], Iterable[N]], *, schema: None = None, on_error: OnError = "stop") -> KeyedStream[N]: ...
    @overload
    def flat_map(self, function: Callable[[R], Iterable[Any]], *, schema: type[C], on_error: OnError = "stop") -> KeyedStream[C]: ...
    @overload
    def flat_map(self, function: Callable[[R], Iterable[Any]], *, schema: SchemaLike = None, on_error: OnError = "stop") -> KeyedStream: ...
    def flat_map(self, function: Callable[[R], Iterable[Any]], *, schema: Any = None, on_error: OnError = "stop") -> KeyedStream[Any]:
        return super().flat_map(function, schema=schema, on_error=on_error)

    def typed(self, cls: type[C], *, on_error: OnError = "stop") -> KeyedStream[C]:
        """Give functions each row as an object of `cls`, as `Stream.typed` does."""
        return cast("KeyedStream[C]", self._then("typed", make_typed(cls, on_error)))

    def _side(self, node: Node, port: str) -> Stream:
        return Stream(self.flow, node, port)

    def _projected(self, name: str, project: Project) -> KeyedStream:
        keys = keys_after(self.keys, project, name)
        return KeyedStream(Stream(self.flow, self._add(name, project)), keys)

    def _computed(self, name: str, compute: Compute) -> KeyedStream:
        keys = keys_with(self.keys, compute, name)
        return KeyedStream(Stream(self.flow, self._add(name, compute)), keys)

    def select(self, *columns: str, **computed: Expression) -> KeyedStream:
        """Keep only these columns, in this order, then compute others, as `Stream.select` does; the key columns must be kept."""
        made = make_select(columns, computed)
        return self._projected("select", made) if isinstance(made, Project) else self._computed("select", made)

    def with_columns(self, columns: Mapping[str, Expression] | None = None, **computed: Expression) -> KeyedStream:
        """Compute columns, as `Stream.with_columns` does; key columns can't be replaced."""
        return self._computed("with_columns", make_with_columns(merged(columns, computed, "with_columns")))

    def drop(self, *columns: str) -> KeyedStream:
        """Remove these columns, which must not be key columns."""
        return self._projected("drop", make_drop(columns))

    def rename(self, columns: Mapping[str, str] | None = None, **names: str) -> KeyedStream:
        """Rename columns, as `Stream.rename` does; keys follow their columns."""
        return self._projected("rename", make_rename(merged(columns, names, "rename")))

    def key_by(self, *keys: str | Callable[[R], Any], column: str = "key") -> KeyedStream[R]:
        """Partition by other keys, as `Stream.key_by` does."""
        return self._stream.key_by(*keys, column=column)

    def deduplicate(self, *columns: str, ttl: Duration | None = None) -> KeyedStream[R]:
        """Keep the first row of each key, or of each key and combination of values in `columns`, as `Stream.deduplicate` does."""
        operator = make_deduplicate(self.keys, columns, ttl)
        return self._same(keyed_node(self._stream, "deduplicate", operator, operator.keys).node)

    def broadcast(self, *columns: str, delete: Expression | None = None, version: str | None = None) -> BroadcastStream:
        """Give every row to every worker, as `Stream.broadcast` does; without `columns` the newest row of each key is kept."""
        return self._stream.broadcast(*(columns or self.keys), delete=delete, version=version)

    def window(self, windows: AnyWindows) -> WindowedStream:
        """Cut each key's rows into windows: of event time by `ef.tumbling("1h")`, `ef.sliding("1h", every="5m")` or `ef.session("10m")`,
        or of a number of rows by `ef.rows(1_000)`. Those with `time="processing"` go by the clock.
        """
        checked = check_windows(windows)
        return WindowedStream(_in_time_of(self._stream, checked), self.keys, checked)

    def aggregate(self, *, emit: Literal["update", "final"] = "update", **aggregates: AggregateFunction) -> Stream:
        """Aggregate without windows: emits a row per changed key and batch, or with `emit="final"` one per key at the end."""
        return self._keyed("aggregate", make_aggregate(self.keys, aggregates, emit))

    @overload
    def stateful_map(
        self,
        function: Callable[[Any, R], tuple[Any, Any]],
        *,
        state: None = None,
        schema: SchemaLike = None,
        on_error: OnError = "stop",
        state_version: int = 1,
        migrate_state: Callable[[int, Any], Any] | None = None,
    ) -> Stream: ...
    @overload
    def stateful_map(
        self,
        function: Callable[[T | None, R], tuple[T | None, Any]],
        *,
        state: type[T],
        schema: SchemaLike = None,
        on_error: OnError = "stop",
        state_version: int = 1,
        migrate_state: Callable[[int, Any], Any] | None = None,
    ) -> Stream: ...
    def stateful_map(
        self,
        function: Callable[[Any, R], tuple[Any, Any]],
        *,
        state: Any = None,
        schema: SchemaLike = None,
        on_error: OnError = "stop",
        state_version: int = 1,
        migrate_state: Callable[[int, Any], Any] | None = None,
    ) -> Stream:
        """Apply `function(state, row) -> (state, row or None)`: the state is None for a new key.

        It is of the type `state`, such as a dataclass, or without one consists of plain values.

        `on_error` is as for `Stream.map`; a refused record leaves its key's state unchanged. The function may then see the earlier records
        of the batch again, with the same states.

        `migrate_state(version, state)` returns the state of a key that code with an older `state_version` wrote, called once for each when
        it is restored, or None to forget the key. Raise `state_version` when the state changes its shape.
        """
        operator = make_stateful_map(
            self.keys, function, state, schema, on_error, self.row_type, version=state_version, migrate=migrate_state
        )
        return self._keyed("stateful_map", operator)

    def stateful_map_columns(
        self, function: ColumnsFunction, *, state: Mapping[str, Any], columns: Iterable[str] | None = None, on_error: OnError = "stop"
    ) -> Stream:
        """Apply `function(state, rows) -> (state, columns or None)` to all rows of a batch at once, sorted by key, as numpy arrays.

        `state` gives the state's columns and their numpy types, `{"n": "int64"}`; the function gets and returns an array for each, one
        entry per key, zero for a new key. `rows` is a `KeyRows`: the rows of a key are adjacent, in arrival order. The result has a row
        for each of them, or for those that `rows.where(mask)` selects; `rows.is_last` is the mask of each key's last row. `columns` names
        the columns that the function reads; fewer are faster. `on_error` is as for `Stream.map_batches`.

        >>> import evenflow as ef
        >>> def running_mean(state, rows):
        ...     n, total = rows.running_count(state["n"]), rows.running_sum("value", state["total"])
        ...     return {"n": rows.last(n), "total": rows.last(total)}, {"key": rows["key"], "mean": total / n}
        >>> flow, out = ef.Dataflow("means"), []
        >>> stream = flow.read(ef.from_items([{"key": "a", "value": 1.0}, {"key": "a", "value": 3.0}])).key_by("key")
        >>> _ = stream.stateful_map_columns(running_mean, state={"n": "int64", "total": "float64"}).write(ef.to_list(out))
        >>> _ = flow.run(runtime="local").wait()
        >>> out
        [{'key': 'a', 'mean': 1.0}, {'key': 'a', 'mean': 2.0}]
        """
        return self._keyed("stateful_map_columns", make_stateful_map_columns(self.keys, function, state, columns, on_error))

    def process(
        self,
        function: KeyedFunction[R],
        broadcast: BroadcastStream | None = None,
        *,
        schema: SchemaLike = None,
        on_error: OnError = "stop",
    ) -> Stream:
        """Emit the rows that your `KeyedFunction` yields: a class with states (value, list, map, with a time to live) and timers per key.

        `broadcast`: a stream (`Stream.broadcast`) whose newest row of each key the function reads as `context.broadcast`. `on_error` is as
        for `stateful_map`; a refused timer counts as fired, and the record of its dead letter is `{"timer": its time}`.
        """
        operator = make_process(self.keys, function, schema, on_error, self.row_type)
        if broadcast is None:
            return self._keyed("process", operator)
        if not isinstance(broadcast, BroadcastStream):
            key = broadcast.keys[0] if isinstance(broadcast, KeyedStream) else "name"
            raise FlowError(
                f"process(..., {broadcast!r:.200}): expected a broadcast stream, for example rules.broadcast({key!r}); co_process takes a "
                "keyed one"
            )
        if broadcast.flow is not self.flow:
            raise FlowError(f"process of streams of two flows, `{self.flow.name}` and `{broadcast.flow.name}`: read both in one flow")
        assert isinstance(broadcast.node.operator, Broadcast)
        inputs = Input(self.node.id, self.port), Input(broadcast.node.id)
        return Stream(self.flow, self.flow.graph.add("process", with_broadcast(operator, broadcast.node.operator), inputs, self.keys))

    def pattern(self, steps: Sequence[Step], within: Duration, *, skip: Skip = "no_skip") -> Matches:
        """Emit a row for each sequence of rows of a key that matches `steps` (`ef.step`), in the order of event time.

        `within`: a match's last row is less than that after its first; so the state is bounded. A row is matched once the watermark has
        passed it, rows of one time in the order of their arrival; rows that arrive behind the watermark go to `late`. `skip`: after a match
        every other is emitted too ("no_skip"), none that begins with the same row ("to_next"), none that begins before the match's end
        ("past_last"), or before the first or last row of a step (`("to_first", name)`, `("to_last", name)`).

        A match has the key columns, a struct with the row of each step, or a list of them if the step is repeated, and `match_start` and
        `match_end`. If the last step is absent, the match is emitted once `within` is over, which is its `match_end`. A key whose partial
        matches hold more than 200,000 rows stops the job.

        >>> import evenflow as ef
        >>> flow, out = ef.Dataflow("fraud"), []
        >>> paid = [{"card": "a", "amount": amount, "ts": ts} for amount, ts in ((5, 0), (90, 40), (800, 70), (900, 900))]
        >>> cards = flow.read(ef.from_items(paid, event_time="ts", unit="s")).key_by("card")
        >>> steps = [ef.step("small", ef.col("amount") < 10), ef.step("big", ef.col("amount") > 500)]
        >>> matches = cards.pattern(steps, within="10m", skip="past_last")
        >>> _ = matches.select("card", big=ef.col("big").struct.field("amount")).write(ef.to_list(out))
        >>> _ = flow.run(runtime="local").wait()
        >>> out
        [{'card': 'a', 'big': 800}]
        """
        stream = self._keyed("pattern", make_match_pattern(self.keys, steps, within, skip, self.row_type))
        return Matches(stream.flow, stream.node)

    def join(
        self, right: KeyedStream[Any], within: Windows | SessionWindows | Between | Always, *, how: How = "inner", suffix: str = "_right"
    ) -> JoinResults:
        """Join with the rows of `right` that have the same key and a matching time.

        `within` defines matching times: windows (both rows are in one window; a pair appears once per common window, with `window_start`
        and `window_end`), `ef.between(lower, upper)` (right's time minus left's), or `ef.always(ttl=None)`. `how`: "inner", "left",
        "right", "full", "semi" (rows of left with a partner), "anti" (rows of left without). The key columns of both may have different
        names. As in SQL, a null in a key equals nothing.

        A row has left's columns, then right's; a column of right whose name left has gets `suffix`, but a key column with the name of
        left's is omitted. Pairs are emitted at once, with the later of both times; rows without a partner are emitted once the watermark
        has passed the last possible partner, with that time, and so are the rows of "semi" and "anti". A join within windows emits
        everything at the window's end. Rows that arrive behind the watermark go to `late_left` and `late_right`. `ef.always()` joins them,
        too, and emits its rows without a partner at the end of the stream.

        >>> import evenflow as ef
        >>> flow, out = ef.Dataflow("orders"), []
        >>> orders = flow.read(ef.from_items([{"order": 1, "ts": 0}, {"order": 2, "ts": 5}], event_time="ts", unit="s"))
        >>> paid = flow.read(ef.from_items([{"id": 1, "by": "card", "ts": 20}], event_time="ts", unit="s"))
        >>> joined = orders.key_by("order").join(paid.key_by("id"), ef.between(0, "1m"), how="left")
        >>> _ = joined.select("order", "by").write(ef.to_list(out))
        >>> _ = flow.run(runtime="local").wait()
        >>> sorted(out, key=lambda row: row["order"])
        [{'order': 1, 'by': 'card'}, {'order': 2, 'by': None}]
        """
        return self._joined("join", right, lambda keys: join(self.keys, keys, within, how, suffix))

    def join_asof(
        self, right: KeyedStream[Any], *, how: Literal["left", "inner"] = "left", max_age: Duration | None = None, suffix: str = "_right"
    ) -> JoinResults:
        """Join each row with the newest row of `right` of its key that is not later than it, and at most `max_age` older.

        A row waits until the watermark has passed it. Of several rows of right with the same time, the greatest is used, compared column
        by column. Columns and late rows are as for `join`.

        >>> import evenflow as ef
        >>> flow, out = ef.Dataflow("trades"), []
        >>> trades = flow.read(ef.from_items([{"item": "a", "n": 5, "ts": 7}], event_time="ts", unit="s"))
        >>> asked = [{"item": "a", "price": price, "ts": at} for price, at in ((2, 1), (3, 6), (4, 8))]
        >>> prices = flow.read(ef.from_items(asked, event_time="ts", unit="s"))
        >>> _ = trades.key_by("item").join_asof(prices.key_by("item")).select("n", "price").write(ef.to_list(out))
        >>> _ = flow.run(runtime="local").wait()
        >>> out
        [{'n': 5, 'price': 3}]
        """
        return self._joined("join_asof", right, lambda keys: join_asof(self.keys, keys, how, max_age, suffix))

    def co_process(
        self, right: KeyedStream[Any], function: CoKeyedFunction, *, schema: SchemaLike = None, on_error: OnError = "stop"
    ) -> Stream:
        """Emit the rows that your `CoKeyedFunction` yields for this stream's rows (`on_left`) and those of `right` (`on_right`) of a key.

        The key columns of both may have different names. States, timers and `on_error` are as for `process`.
        """
        return self._with("co_process", right, lambda keys: co_process(self.keys, keys, function, schema, on_error))

    def co_group(
        self,
        right: KeyedStream[Any],
        windows: Windows | SessionWindows,
        function: CoGroupFunction,
        *,
        schema: SchemaLike = None,
        on_error: OnError = "stop",
    ) -> JoinResults:
        """Emit the rows that `function(key, window, left_rows, right_rows)` yields, per key and complete window with rows of either side.

        `windows`: `ef.tumbling`, `ef.sliding` or `ef.session`. Each side's rows are a list of dicts in the order of event time, and of
        equal times in the order of their values; it is empty if the side has none. A null in a key is a key like any other. The function,
        its results and `on_error` are as for `.window(...).process`, late rows as for `join`.

        >>> import evenflow as ef
        >>> def missing(key, window, orders, payments):
        ...     yield {"customer": key, "missing": sum(row["price"] for row in orders) - sum(row["paid"] for row in payments)}
        >>> flow, out = ef.Dataflow("orders"), []
        >>> orders = flow.read(ef.from_items([{"who": "ann", "price": 9, "ts": 0}, {"who": "bob", "price": 4, "ts": 5}], event_time="ts"))
        >>> payments = flow.read(ef.from_items([{"by": "ann", "paid": 8, "ts": 7}], event_time="ts"))
        >>> _ = orders.key_by("who").co_group(payments.key_by("by"), ef.tumbling("1m"), missing).write(ef.to_list(out))
        >>> _ = flow.run(runtime="local").wait()
        >>> sorted((row["customer"], row["missing"]) for row in out)
        [('ann', 1), ('bob', 4)]
        """
        return self._joined("co_group", right, lambda keys: co_group(self.keys, keys, windows, function, schema, on_error))

    def _joined(self, name: str, right: Any, make: Callable[[tuple[str, ...]], KeyedOperator]) -> JoinResults:
        stream = self._with(name, right, make)
        return JoinResults(stream.flow, stream.node)

    def _with(self, name: str, right: Any, make: Callable[[tuple[str, ...]], KeyedOperator]) -> Stream:
        """Add an operator of this stream and `right`, both in their common form; `make` gets right's key columns."""
        if not isinstance(right, KeyedStream):
            raise FlowError(
                f'{name}({right!r:.200}): expected a keyed stream, for example left.key_by("id").{name}(right.key_by("id"), ...)'
            )
        flow = self.flow
        if right.flow is not flow:
            raise FlowError(f"{name} of streams of two flows, `{flow.name}` and `{right.flow.name}`: read both in one flow")
        operator = make(right.keys)
        flow.graph.check_updates(name, operator, (Input(self.node.id, self.port), Input(right.node.id, right.port)))
        sides = (("left", self, JoinSide(LEFT, self.keys)), ("right", right, JoinSide(RIGHT, right.keys)))
        nodes = [flow.graph.add(f"{name}.{what}", side, (Input(keyed.node.id, keyed.port),)) for what, keyed, side in sides]
        return Stream(flow, flow.graph.add(name, operator, tuple(Input(node.id) for node in nodes), operator.keys))

    def _keyed(self, name: str, operator: Operator) -> Stream:
        return keyed_node(self._stream, name, operator, self.keys)


class BroadcastStream:
    """A stream that every worker gets as a whole, in one order. `keys`: each worker keeps the newest row of each value of these columns."""

    def __init__(self, flow: Flow, node: Node) -> None:
        assert isinstance(node.operator, Broadcast)
        self.flow, self.node, self.keys = flow, node, node.operator.keys

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not hasattr(KeyedStream, name):
                raise AttributeError(f"a BroadcastStream has no attribute {name!r}")
            raise MissingMethodError(
                f".{name}(...) can't follow .broadcast(...): call it before, and pass the broadcast stream to .process(function, rules) "
                "of a keyed stream"
            )

    def named(self, name: str) -> Self:
        """Name the operator, as `Stream.named` does."""
        self.flow.graph.rename(self.node, name)
        return self


class Matches(Stream):
    """The matches of a pattern; `late` is the side stream of late rows."""

    @property
    def late(self) -> Stream:
        """The rows that arrived after the watermark had passed their time."""
        return Stream(self.flow, self.node, "late")


class JoinResults(Stream):
    """The results of a join; `late_left` and `late_right` are the side streams of late rows."""

    @property
    def late_left(self) -> Stream:
        """The rows of left that arrived after the watermark had passed their time, or the end of their windows."""
        return Stream(self.flow, self.node, LATE[LEFT])

    @property
    def late_right(self) -> Stream:
        """The rows of right that arrived after the watermark had passed their time, or the end of their windows."""
        return Stream(self.flow, self.node, LATE[RIGHT])


class WindowedStream:
    """A stream cut into windows."""

    def __init__(self, stream: Stream[Any], keys: tuple[str, ...], windows: AnyWindows) -> None:
        self._stream, self.keys, self._windows = stream, keys, windows

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not hasattr(KeyedStream, name):
                raise AttributeError(f"a WindowedStream has no attribute {name!r}")
            raise MissingMethodError(f".{name}(...) can't follow .window(...): call .aggregate(...) or .process(...), then .{name}(...)")

    def aggregate(
        self,
        *,
        emit: Literal["final", "update"] = "final",
        every: Duration | None = None,
        lateness: Duration = 0,
        **aggregates: AggregateFunction,
    ) -> WindowResults:
        """Emit a row per key and window, when the window has ended: the key columns, `window_start`, `window_end` and the aggregates.

        With `emit="update"` changed rows are also emitted before: whenever event time passes a multiple of `every`, or with each advance
        of it. With `lateness` records that arrive after their windows have ended are not late yet: they change the results, which are
        emitted again, until event time has passed the end and `lateness`. Of the rows of a key and window the newest one counts; it may
        repeat the one before it, when the key has moved to another worker or the job has recovered.

        A row's time is its window's last microsecond, that of a session its `window_end`. So a correction is late for windows that follow,
        unless they allow lateness as well. With `ef.rows` there is no window of time: in place of its bounds, `window_end_row` is the
        number of the window's last row among its key's rows, and the result has that row's event time.

        >>> import evenflow as ef
        >>> flow, out = ef.Dataflow("early"), []
        >>> rows = ef.from_items([{"k": "a", "t": second} for second in (1, 3, 4, 12, 8, 70)], event_time="t", unit="s")
        >>> windows = flow.read(rows).key_by("k").window(ef.tumbling("10s"))
        >>> _ = windows.aggregate(emit="update", every="2s", lateness="1m", n=ef.count()).write(ef.to_list(out))
        >>> _ = flow.run(runtime="local").wait()
        >>> {f"{row['window_end']:%M:%S}": row["n"] for row in out}  # of several rows of a window the last
        {'00:10': 4, '00:20': 1, '01:20': 1}
        """
        operator = make_window_aggregate(self.keys, self._windows, aggregates, emit, every, lateness)
        stream = keyed_node(self._stream, "aggregate", operator, self.keys)
        return WindowResults(stream.flow, stream.node)

    def process(self, function: WindowFunction, *, schema: SchemaLike = None, on_error: OnError = "stop") -> WindowResults:
        """Emit the rows that `function(key, window, rows)` yields, called once per key and complete window of event time.

        `rows` are all rows of the window as dicts, in the order of event time, and of equal times in the order of their values, column by
        column. So the order doesn't depend on arrival. `window` has `start` and `end` (datetimes in UTC). The key is None without
        `key_by`, and a tuple if it has several columns. The results have the event time of the window's results in `aggregate`.

        `function` may be a class, as for `map`. `on_error` is as for `map`: a window that the function refuses is dropped as a whole. The
        record of its dead letter has the window's bounds and rows.

        >>> import evenflow as ef
        >>> def spread(key, window, rows):
        ...     yield {"key": key, "from": window.start.minute, "spread": rows[-1]["price"] - rows[0]["price"]}
        >>> flow, out = ef.Dataflow("spread"), []
        >>> trades = [{"key": "a", "price": price, "ts": ts} for price, ts in ((3, 0), (7, 50), (1, 70))]
        >>> prices = flow.read(ef.from_items(trades, event_time="ts", unit="s")).key_by("key")
        >>> _ = prices.window(ef.tumbling("1m")).process(spread).write(ef.to_list(out))
        >>> _ = flow.run(runtime="local").wait()
        >>> out
        [{'key': 'a', 'from': 0, 'spread': 4}, {'key': 'a', 'from': 1, 'spread': 0}]
        """
        operator = make_window_process(self.keys, self._windows, function, schema, on_error)
        stream = keyed_node(self._stream, "process", operator, self.keys)
        return WindowResults(stream.flow, stream.node)


class WindowResults(Stream):
    """The results of windows; `late` is the side stream of late records."""

    @property
    def late(self) -> Stream:
        """The original records that arrived after all of their windows, and the allowed lateness, had passed."""
        if isinstance(self.node.operator, AggregateRows):
            raise FlowError(f"operator `{self.node.name}` has no late records: its windows count rows, whatever their times")
        return Stream(self.flow, self.node, "late")


def keyed_node(stream: Stream[Any], name: str, operator: Operator, keys: tuple[str, ...]) -> Stream:
    """Add a keyed operator that reads `stream`, and return its output."""
    node = stream.flow.graph.add(name, operator, (Input(stream.node.id, stream.port),), keys)
    if keys == UNKEYED:
        node.parallelism, node.bounds = 1, WorkerBounds(fixed=True)
    return Stream(stream.flow, node)


def _of(stream: AnyStream, rows: RowType | None) -> AnyStream:
    """Return the stream, as one of rows of a class."""
    stream.row_type = rows
    return stream


def _in_time_of(stream: Stream[Any], windows: AnyWindows) -> Stream[Any]:
    """Return the stream whose event times are those by which rows are put into `windows`."""
    return stream.with_arrival_time() if isinstance(windows, (Windows, SessionWindows)) and windows.time == "processing" else stream
