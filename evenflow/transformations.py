"""The methods that `Stream` and `KeyedStream` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, Protocol, Self, TypeAlias

import pyarrow as pa
from typing_extensions import TypeVar

from .building.columns import merged
from .building.lookup_table import make_lookup
from .building.row_operators import (
    ResultLike,
    make_branch,
    make_cast,
    make_changelog,
    make_drop,
    make_explode,
    make_filter,
    make_flat_map,
    make_map,
    make_map_async,
    make_map_batches,
    make_rename,
    make_select,
    make_with_columns,
    make_with_time,
)
from .engine.errors import FlowError
from .engine.expressions.expression import Expression
from .engine.functions.batch_formats import Format
from .engine.functions.error_policy import DEAD_LETTERS, OnError
from .engine.operators.base import Operator
from .engine.operators.function import FunctionOperator
from .engine.operators.joins.lookup import How
from .engine.operators.rows.branch import OTHERWISE
from .engine.operators.rows.with_arrival_time import WithArrivalTime
from .engine.plan.graph import Graph, Input, Node
from .engine.plan.resources import Resources
from .engine.plan.worker_bounds import WorkerBounds
from .engine.sink import Sink
from .engine.source import Source
from .engine.time.duration import Duration
from .engine.typed_rows.row_type import RowType

T_co = TypeVar("T_co", covariant=True)
P_co = TypeVar("P_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)

R = TypeVar("R", default=dict[str, Any])
"""The rows that the functions of a stream's user get."""


class DataclassRow(Protocol):
    """An object of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class NamedRow(Protocol):
    """An object of a NamedTuple."""

    def _asdict(self) -> dict[str, Any]: ...


class StructRow(Protocol):
    """An object of a msgspec.Struct."""

    __struct_fields__: ClassVar[tuple[str, ...]]


class ModelRow(Protocol):
    """An object of a Pydantic model."""

    def model_dump_json(self) -> str: ...


TypedRow: TypeAlias = DataclassRow | NamedRow | StructRow | ModelRow
"""An object that a function annotated with its class may return as a row."""

N = TypeVar("N", bound=TypedRow)
C = TypeVar("C")


class Flow(Protocol):
    """The parts of a dataflow that its streams need."""

    name: str
    graph: Graph


class Transformations(ABC, Generic[T_co, P_co, S_co, R]):
    """A stream whose methods return a stream of the same kind and rows, `T_co`, one of dicts, `P_co`, or one without keys, `S_co`.

    `flow`, `node`, `port`: the dataflow, the operator that made the stream, and the operator's output. `row_type`: the class of
    the rows that functions get, None for dicts.
    """

    row_type: RowType | None = None

    def __init__(self, flow: Flow, node: Node, port: str = "out") -> None:
        self.flow, self.node, self.port = flow, node, port

    @abstractmethod
    def _on(self, node: Node, rows: RowType | None = None) -> P_co:
        """Return the stream of this kind at the output of `node`, of dicts, or of the objects that the user's function returned."""

    @abstractmethod
    def _same(self, node: Node, port: str = "out") -> T_co:
        """Return the stream of this kind, of the same rows, at the output `port` of `node`."""

    @abstractmethod
    def _side(self, node: Node, port: str) -> S_co:
        """Return the stream at another output of the operator that made this stream, or of the source whose rows it has."""

    def named(self, name: str) -> Self:
        """Name the operator that made this stream. Plans, actors, metrics and the job's handle use the name."""
        self.flow.graph.rename(self.node, name)
        return self

    def parallelism(self, workers: int | None = None, *, between: tuple[int, int] | None = None, fixed: bool = False) -> Self:
        """Run the operator that made this stream in `workers` workers; None for the job's default.

        Automatic scaling keeps the number within `between` (fewest, most), in place of the job's `min_parallelism` and `max_parallelism`,
        and doesn't change it if `fixed`. Chained operators share their workers, and keep to the bounds of each. `job.scale` ignores the
        bounds.
        """
        name = self.node.name
        if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
            raise FlowError(f"operator `{name}`: parallelism {workers!r} must be a whole number of at least 1")
        if between is not None and (not isinstance(between, tuple) or len(between) != 2):
            raise FlowError(f"operator `{name}`: between={between!r} must be the fewest and the most workers, for example between=(1, 4)")
        try:
            least, most = between if between is not None else (None, None)
            self.node.bounds = WorkerBounds(least, most, fixed)
        except FlowError as error:
            raise FlowError(f"operator `{name}`: parallelism(between={between!r}): {error}") from error
        if workers is not None:
            self.node.parallelism = workers
        return self

    def resources(
        self, *, cpus: float | None = None, gpus: float = 0, memory: int | str = 0, custom: Mapping[str, float] | None = None
    ) -> Self:
        """Reserve resources of the Ray cluster for each worker of the operator that made this stream.

        The operator gets workers of its own, on nodes that have the resources; operators behind it that name none may share them. `cpus`:
        None for those of `WorkerConfig`. `memory`: bytes, or a text such as "4GB". `custom`: amounts of resources that the cluster's
        nodes name, such as `{"tpu": 1}`. In one process, without Ray, they have no effect.
        """
        try:
            self.node.resources = Resources(cpus, gpus, memory, {} if custom is None else custom)
        except FlowError as error:
            raise FlowError(f"operator `{self.node.name}`: resources({error})") from error
        return self

    def map(self, function: Callable[[R], Any], *, schema: ResultLike = None, on_error: OnError = "stop") -> P_co:
        """Apply `function(row) -> row`, which returns a dict, or a plain value for the column `item`.

        `schema` declares the columns' types, by name: Arrow's, their names, or Python's. A value that would change in its type is refused.
        Without it, columns keep the types of the input's columns of their names, and types widen with the values.

        `on_error` is the error policy for a row for which your function raises or returns a value that doesn't fit its columns: "stop"
        ends the job with an error that shows the row, "skip" counts the row (`job.metrics()`), "dead_letter" sends it to `dead_letters`.

        For a function that needs an expensive object, such as a model or a connection, give a class with a method `__call__(self, row)`.
        Each worker creates one object of it, and calls its method `close()`, if there is one, at the end. `functools.partial(Model, ...)`
        gives arguments to its constructor.

        >>> import evenflow as ef
        >>> class Prices:
        ...     def __init__(self):
        ...         self.by_word = {"tea": 3, "milk": 2}
        ...     def __call__(self, row):
        ...         return row | {"price": self.by_word[row["item"]]}
        >>> flow, rows = ef.Dataflow("prices"), []
        >>> _ = flow.read(ef.from_items(["milk", "tea"])).map(Prices).write(ef.to_list(rows))
        >>> _ = flow.run(runtime="local").wait()
        >>> rows
        [{'item': 'milk', 'price': 2}, {'item': 'tea', 'price': 3}]
        """
        return self._then("map", make_map(function, schema, on_error, self.row_type))

    def flat_map(self, function: Callable[[R], Iterable[Any]], *, schema: ResultLike = None, on_error: OnError = "stop") -> P_co:
        """Apply `function(row) -> rows`, which returns any number of rows. `on_error`, and a class in place of a function, are as for
        `map`.
        """
        return self._then("flat_map", make_flat_map(function, schema, on_error, self.row_type))

    def filter(self, predicate: Callable[[R], Any] | Expression, *, on_error: OnError = "stop") -> T_co:
        """Keep rows for which `predicate(row)` is True, or an expression such as `ef.col("delay") > 0`, which is much faster.

        `on_error`, and a class in place of a function, are as for `map`.
        """
        return self._same(self._add("filter", make_filter(predicate, on_error, self.row_type)))

    def branch(self, predicate: Callable[[R], Any] | Expression, *, on_error: OnError = "stop") -> tuple[T_co, T_co]:
        """Split the stream in two: the rows for which `predicate` is true, as for `filter`, and all others. It is evaluated once per row.

        The second stream also has the rows for which an expression is null. `on_error` is as for `map`.

        >>> import evenflow as ef
        >>> flow, small, large = ef.Dataflow("sizes"), [], []
        >>> below, above = flow.read(ef.from_items([1, 20, 3])).branch(lambda row: row["item"] < 10)
        >>> _ = below.write(ef.to_list(small, name="small")), above.write(ef.to_list(large, name="large"))
        >>> _ = flow.run(runtime="local").wait()
        >>> small, large
        ([{'item': 1}, {'item': 3}], [{'item': 20}])
        """
        node = self._add("branch", make_branch(predicate, on_error, self.row_type))
        return self._same(node), self._same(node, OTHERWISE)

    def map_batches(
        self,
        function: Callable[[Any], Any],
        *,
        format: Format = "arrow",  # noqa: A002 -- named as in Spark and Ray
        batch_size: int | None = None,
        timeout: Duration = "50ms",
        event_time: str | None = None,
        on_error: OnError = "stop",
    ) -> P_co:
        """Apply `function(batch) -> batch`, for vectorised work.

        `format` is that of the argument: "arrow", a `pyarrow.RecordBatch`; "pandas" and "polars", a DataFrame, in pandas with Arrow's
        types, so that values stay as they are; "numpy", a dict from names to arrays, in which a column of numbers or times may have no
        nulls. The result may be in any of these formats, or a `pyarrow.Table`.

            prices.map_batches(lambda frame: frame.assign(total=frame["price"] * frame["n"]), format="pandas")

        With `batch_size`, rows wait until there are that many, for a model that is faster with more of them, but no longer than about
        `timeout`; the last batch before a checkpoint or a move of keys is smaller too. Otherwise a batch has the rows that have come
        together.

        A stream with event time keeps the number of rows, unless `event_time` names the column of the result with their times: each a
        timestamp that is no earlier than the first time of the batch.

        `on_error`, and a class in place of a function, are as for `map`. A batch for which the function raises is tried again in halves,
        down to the row that is refused.
        """
        return self._then("map_batches", make_map_batches(function, format, batch_size, timeout, event_time, on_error))

    def map_async(
        self,
        function: Callable[[R], Awaitable[Any]],
        *,
        concurrency: int = 100,
        ordered: bool = True,
        timeout: Duration | None = "30s",
        retries: int = 0,
        backoff: Duration = "200ms",
        schema: ResultLike = None,
        on_error: OnError = "stop",
    ) -> P_co:
        """Apply `await function(row) -> row`, as `map` does, for functions that wait: up to `concurrency` rows of each worker wait at the
        same time.

        Rows are emitted in their order, or as they are ready with `ordered=False`. A coroutine that takes longer than `timeout` is
        cancelled, and its row is refused: `on_error` is as for `map`. A class in place of a function, as for `map`, is created and closed
        inside the event loop; its `close` may be async.

        With `retries`, a call that raises or takes too long is repeated up to so many times: after `backoff`, then after twice as long,
        and so on up to 30 seconds, each less a random part of up to a half.

        A batch is complete when all of its coroutines have ended, so a checkpoint contains no row half processed: each row counts exactly
        once in the state and the sinks of the job, but after a recovery your function may be called for it again.

        >>> import asyncio
        >>> import evenflow as ef
        >>> async def fetched(row):
        ...     await asyncio.sleep(0)
        ...     return row | {"found": row["item"].upper()}
        >>> flow, rows = ef.Dataflow("fetch"), []
        >>> _ = flow.read(ef.from_items(["a", "b"])).map_async(fetched, concurrency=10).write(ef.to_list(rows))
        >>> _ = flow.run(runtime="local").wait()
        >>> rows
        [{'item': 'a', 'found': 'A'}, {'item': 'b', 'found': 'B'}]
        """
        made = make_map_async(function, concurrency, ordered, timeout, retries, backoff, schema, on_error, self.row_type)
        return self._on(self._add("map_async", made))

    def lookup(
        self,
        table: Any,
        on: str | Iterable[str] | Mapping[str, str],
        *,
        how: How = "left",
        columns: Iterable[str] | None = None,
        unique: bool = False,
        suffix: str = "_right",
        refresh: Duration | None = None,
    ) -> P_co:
        """Add columns of a table by common keys: `on` names them, or maps the stream's names to the table's.

        `table` is a pyarrow Table, a pandas or Polars DataFrame, or another frame with `__arrow_c_stream__`; a Spark DataFrame, which is
        collected at once; a source with an end, such as `ef.read_parquet("airports/")`; or a function without arguments that returns such
        a table. A named index of a pandas DataFrame is a column. Each worker reads the whole source, or calls the function, whenever it
        starts. Every worker has the whole table in memory.

        With `refresh="5m"` each worker reads it again five minutes after the last time, in the background, and uses the new table from the
        next batch on. The new table must have the columns of the first one, of the same types. If it can't be read, the old one remains,
        and `job.status().problems` says why. The table that a row is matched with depends on the row's arrival; after a recovery it may be
        another.

        A row without a match is kept, with nulls (`how="left"`), or dropped ("inner"). A key with a null matches nothing. A row with
        several matches gives one row for each, with its event time; with `unique=True` a table with a repeated key is an error. `columns`
        are those to add, by default all but the table's key columns; one whose name the stream has already gets `suffix`.

        >>> import evenflow as ef
        >>> import pyarrow as pa
        >>> airports = pa.table({"code": ["JFK", "LHR"], "city": ["New York", "London"]})
        >>> flow, rows = ef.Dataflow("cities"), []
        >>> flights = flow.read(ef.from_items([{"dest": "LHR"}, {"dest": "XXX"}]))
        >>> _ = flights.lookup(airports, on={"dest": "code"}).write(ef.to_list(rows))
        >>> _ = flow.run(runtime="local").wait()
        >>> rows
        [{'dest': 'LHR', 'city': 'London'}, {'dest': 'XXX', 'city': None}]
        """
        return self._then("lookup", make_lookup(table, on, how, columns, unique=unique, suffix=suffix, refresh=refresh))

    def with_time(self, time: str | Callable[[R], Any], *, unit: str = "ms", max_delay: Duration = 0, on_error: OnError = "stop") -> T_co:
        """Set the event time from here on: a column, or `function(row)`, replaces the source's, for times that have to be parsed first.

        The times are timestamps, dates, or numbers that count `unit` ("s", "ms", "us" or "ns") since 1970. A row may arrive up to
        `max_delay` after a newer one of its worker: each worker's watermark is the newest time that it has seen, minus `max_delay`. So the
        rows of a worker should arrive roughly in order: put `with_time` close to the source, whose order it then sees. A worker that gets
        no rows holds event time back until its input ends. `on_error` is as for `map`, also for a time that is null or outside of the
        years 1 to 9999.

        >>> import evenflow as ef
        >>> from datetime import datetime
        >>> flow, rows = ef.Dataflow("log"), []
        >>> lines = flow.read(ef.from_items(["2026-01-31T10:00:00 a", "2026-01-31T10:59:59 b", "2026-01-31T11:00:00 c"]))
        >>> hits = lines.with_time(lambda row: datetime.fromisoformat(row["item"].split()[0]))
        >>> counts = hits.key_by(lambda row: "all").window(ef.tumbling("1h")).aggregate(n=ef.count())
        >>> _ = counts.write(ef.to_list(rows))
        >>> _ = flow.run(runtime="local").wait()
        >>> [(row["window_start"].hour, row["n"]) for row in rows]
        [(10, 2), (11, 1)]
        """
        return self._same(self._add("with_time", make_with_time(time, unit, max_delay, on_error, self.row_type)))

    def with_arrival_time(self) -> T_co:
        """Set the event time from here on to the time at which a row arrives at this operator. It advances even without rows.

        Results aren't repeatable: a row that is read again after a recovery gets another time, and so may fall into another window. Each
        row still counts exactly once.
        """
        return self._same(self._add("with_arrival_time", WithArrivalTime()))

    def changelog(self, op: str = "op") -> P_co:
        """Turn updates into an append-only stream of changes, for sinks that can't replace rows: files, topics, `to_list`.

        The column `op` is "insert" for a row that is there from now on, and "delete" for one that no longer is. A row that changes is
        deleted and inserted. The inserts of a row minus its deletes tell if it is there, also if changes of a key that moved arrive in
        another order. In a run from a savepoint of a flow without this changelog, the rows of before are not inserted, only deleted.

        Raises FlowError for append-only streams, and for updates whose replaced rows aren't known.
        """
        updates = self.flow.graph.updates_of(Input(self.node.id, self.port))
        return self._then("changelog", make_changelog(op, updates))

    def explode(self, column: str, *, position: str | None = None) -> P_co:
        """Emit a row for each element of the lists in `column`; the fields of structs become columns, other elements keep the column's
        name.

        `position` names a column that numbers the elements of a list from 1. A row with an empty list or a null is dropped. See `ef.top`
        for an example.
        """
        return self._then("explode", make_explode(column, position))

    def select(self, *columns: str, **computed: Expression) -> P_co:
        """Keep only these columns, in this order, then compute others, as `with_columns` does: `select("id", total=ef.col("a") + 1)`."""
        return self._then("select", make_select(columns, computed))

    def with_columns(self, columns: Mapping[str, Expression] | None = None, **computed: Expression) -> P_co:
        """Add columns that expressions compute, all from the columns of this stream: `with_columns(total=ef.col("price") * ef.col("qty"))`.

        A column of the same name is replaced, in its place. `columns` takes names that Python doesn't allow as arguments:
        `with_columns({"unit price": ...})`. Types are checked at once if those of the stream are known. A value that can't be computed,
        such as a whole number that overflows, ends the job with an error that shows the row.

        >>> import evenflow as ef
        >>> flow, rows = ef.Dataflow("totals"), []
        >>> orders = flow.read(ef.from_items([{"item": "tea", "price": 3, "qty": 2}]))
        >>> _ = orders.with_columns(total=ef.col("price") * ef.col("qty"), item=ef.col("item").str.upper()).write(ef.to_list(rows))
        >>> _ = flow.run(runtime="local").wait()
        >>> rows
        [{'item': 'TEA', 'price': 3, 'qty': 2, 'total': 6}]
        """
        return self._then("with_columns", make_with_columns(merged(columns, computed, "with_columns")))

    def drop(self, *columns: str) -> P_co:
        """Remove these columns."""
        return self._then("drop", make_drop(columns))

    def rename(self, columns: Mapping[str, str] | None = None, **names: str) -> P_co:
        """Rename columns: `rename(old="new")` or `rename({"old": "new"})`."""
        return self._then("rename", make_rename(merged(columns, names, "rename")))

    def cast(self, types: Mapping[str, pa.DataType | str | type] | None = None, **columns: pa.DataType | str | type) -> P_co:
        """Convert columns to other types: `cast(price="float64")`, or `cast({"at": pa.timestamp("ms")})`. Other columns stay as they are.

        A type is Arrow's, its name (`"decimal128(10, 2)"`), or Python's (`float`). Whole numbers become timestamps that count the type's
        unit since 1970. A value that the type can't hold ends the job with an error.

        >>> import evenflow as ef
        >>> flow, rows = ef.Dataflow("types"), []
        >>> _ = flow.read(ef.from_items([{"n": "7", "at": 0}])).cast(n="int64", at="timestamp[ms]").write(ef.to_list(rows))
        >>> _ = flow.run(runtime="local").wait()
        >>> rows
        [{'n': 7, 'at': datetime.datetime(1970, 1, 1, 0, 0)}]
        """
        return self._then("cast", make_cast(merged(types, columns, "cast")))

    @property
    def dead_letters(self) -> S_co:
        """The stream of records that this stream's operator or source refused; it needs `on_error="dead_letter"`.

        All columns are strings: `operator`, `key` (JSON, null if the operator has no keys), `record` (JSON), `error` (its type),
        `message`.

        >>> import evenflow as ef
        >>> flow, numbers, bad = ef.Dataflow("parse"), [], []
        >>> lines = flow.read(ef.from_items(["1", "two", "3"]))
        >>> parsed = lines.map(lambda row: int(row["item"]), on_error="dead_letter").write(ef.to_list(numbers))
        >>> _ = parsed.dead_letters.write(ef.to_list(bad, name="bad"))
        >>> _ = flow.run(runtime="local").wait()
        >>> numbers, bad[0]["operator"], bad[0]["record"], bad[0]["error"]
        ([{'item': 1}, {'item': 3}], 'map', '{"item": "two"}', 'ValueError')
        """
        node = self.flow.graph.refusing(self.node)
        operator = node.operator
        if not isinstance(operator, (FunctionOperator, Source)) or operator.on_error != "dead_letter":
            raise FlowError(f'operator `{node.name}` has no dead letters: give it on_error="dead_letter"')
        return self._side(node, DEAD_LETTERS)

    def write(self, sink: Sink) -> Self:
        """End the stream in a sink; return this stream, so that it can also go elsewhere."""
        if not isinstance(sink, Sink):
            raise FlowError(f'.write({sink!r}): expected a sink, for example ef.write_parquet("out/")')
        taken = next((node.name for node in self.flow.graph if node.operator is sink), None)
        if taken is not None:
            raise FlowError(f"sink `{taken}` is written twice: make another for this stream, or write the union of both streams")
        self.flow.graph.add(sink.name, sink, (Input(self.node.id, self.port),))
        return self

    def _add(self, name: str, operator: Operator) -> Node:
        return self.flow.graph.add(name, operator, (Input(self.node.id, self.port),))

    def _then(self, name: str, operator: Operator) -> P_co:
        return self._on(self._add(name, operator), operator.results if isinstance(operator, FunctionOperator) else None)
