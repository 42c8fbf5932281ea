"""`ef.sql`: a query over streams and tables, as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.errors import FlowError
from ..engine.plan.graph import Input
from ..stream import KeyedStream, Stream


@dataclass(frozen=True, slots=True)
class NamedStream:
    """A stream that a query reads, and the names of its columns; `arrivals`: those that are the time of arrival, and aren't there.

    `complete`: it certainly has no other columns.
    """

    stream: Stream
    columns: tuple[str, ...]
    arrivals: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table for lookups, as the user gave it, and the names of its columns."""

    table: Any
    names: tuple[str, ...]


def sql(query: str, *, ttl: Any = None, functions: Mapping[str, Any] | None = None, **inputs: Any) -> Stream:
    """Return the rows of an SQL query, in Flink's dialect, over the streams and tables that it names.

        totals = ef.sql("SELECT user, SUM(price * n) AS total FROM orders GROUP BY user", orders=orders)

    `inputs` are streams whose columns are known (say `schema=` where a function makes them), and tables for lookups: Arrow tables
    and frames. Of a stream that may have more columns than are known, such as files that aren't there yet, name those to read.
    `ttl` is the time for which a join without bounds of time and SELECT DISTINCT keep a row, in event time: such as "1d", or
    "never" to keep all; rows of a join then match if their times are at most that far apart.

    `functions` are Python functions of values that the query calls by name, for each row, null as None: `{"words": words}` for
    `def words(text: str) -> int`, or `{"words": (f, "int64")}` with the type of the results.

    Raises FlowError for what isn't supported, naming the part of the query and what to write instead. Needs the package sqlglot:
    `pip install 'evenflow[sql]'`.

    >>> import evenflow as ef
    >>> flow, rows = ef.Dataflow("totals"), []
    >>> orders = flow.read(ef.from_items([{"user": "ann", "price": 3, "n": 2}, {"user": "bob", "price": 5, "n": 1}]))
    >>> _ = ef.sql("SELECT user, price * n AS total FROM orders WHERE price < 5", orders=orders).write(ef.to_list(rows))
    >>> _ = flow.run(runtime="local").wait()
    >>> rows
    [{'user': 'ann', 'total': 6}]
    """
    try:
        import sqlglot  # noqa: F401 -- the modules below need it
    except ImportError as error:
        raise FlowError("sql(...) needs the package sqlglot: pip install 'evenflow[sql]'") from error
    from .dialect import parsed
    from .names import resolved
    from .query import Query
    from .user_functions import checked_functions

    streams, tables = _sorted_out(inputs)
    trees = parsed(query)
    if len(trees) != 1:
        raise FlowError(f"sql(...): expected one query, got {len(trees)} statements")
    columns = {name: each.columns for name, each in streams.items()} | {name: each.names for name, each in tables.items()}
    made = Query(streams, tables, ttl, checked_functions(functions))
    partly = {name for name, each in streams.items() if not each.complete}
    return made.shown(made.relation(resolved(trees[0], columns, partly))).stream


def _sorted_out(inputs: Mapping[str, Any]) -> tuple[dict[str, NamedStream], dict[str, NamedTable]]:
    """Return the streams and the tables. Raises FlowError for anything else, and for a stream whose columns aren't known."""
    from ..engine.types.frames import frame_as_arrow

    streams: dict[str, NamedStream] = {}
    tables: dict[str, NamedTable] = {}
    for name, given in inputs.items():
        if isinstance(given, KeyedStream):
            given = Stream(given.flow, given.node, given.port)  # noqa: PLW2901
        if isinstance(given, Stream):
            known = given.flow.graph.columns_of(Input(given.node.id, given.port))
            if not known.types:
                raise FlowError(
                    f"sql({name}=...): the columns of the stream aren't known before it runs: declare them, for example by schema= of the "
                    "function or source that makes it"
                )
            streams[name] = NamedStream(given, tuple(known.types), complete=known.complete)
        else:
            table = frame_as_arrow(given, f"sql({name}=...)")
            if table is None:
                raise FlowError(f"sql({name}={given!r:.100}): expected a stream, an Arrow table or a frame")
            tables[name] = NamedTable(table, tuple(table.column_names))
    if not streams:
        raise FlowError(
            'sql(...): give at least one stream by its name in the query, for example sql("SELECT ... FROM clicks", clicks=clicks)'
        )
    if len({id(each.stream.flow) for each in streams.values()}) > 1:
        raise FlowError("sql(...): its streams are of several flows: read all in one flow")
    return streams, tables
