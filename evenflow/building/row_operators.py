"""Makes the operators that process rows one by one, or batch by batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from ..engine.errors import FlowError, short
from ..engine.expressions.expression import Expression, instead_of_arrow
from ..engine.expressions.trees.tree import Tree
from ..engine.functions.batch_formats import check_format
from ..engine.functions.error_policy import check_on_error
from ..engine.functions.retries import Retries
from ..engine.functions.rows_encoder import SchemaLike, arrow_schema
from ..engine.functions.user_function import check_function
from ..engine.operators.processing.deduplicate import Deduplicate
from ..engine.operators.rows.branch import Branch
from ..engine.operators.rows.cast import Cast
from ..engine.operators.rows.changelog import Changelog
from ..engine.operators.rows.compute import Compute
from ..engine.operators.rows.explode import Explode
from ..engine.operators.rows.filter import Filter
from ..engine.operators.rows.flat_map import FlatMap
from ..engine.operators.rows.key_by import KeyBy
from ..engine.operators.rows.map import Map
from ..engine.operators.rows.map_async import MapAsync
from ..engine.operators.rows.map_batches import MapBatches
from ..engine.operators.rows.map_gathered import MapGathered
from ..engine.operators.rows.project import Project
from ..engine.operators.rows.typed import Typed
from ..engine.operators.rows.with_time import WithTime
from ..engine.time.duration import Duration, microseconds, seconds
from ..engine.time.event_time import EventTime
from ..engine.typed_rows.annotations import row_type
from ..engine.typed_rows.return_types import returned_class
from ..engine.typed_rows.row_classes import is_row_class
from ..engine.typed_rows.row_type import RowType
from ..engine.updates import Updates
from .columns import check_columns

ResultLike: TypeAlias = SchemaLike | type[Any]
"""The types of a function's results, or their class."""


def make_typed(cls: Any, on_error: str) -> Typed:
    """Make `typed`. Raises FlowError for a class that is none of rows, or has a field that no column can hold."""
    return Typed(row_type(cls, "typed"), check_on_error(on_error, "typed"))


def make_map(function: Any, schema: ResultLike, on_error: str, rows: RowType | None = None) -> Map:
    """Make `map` of rows of the class `rows`. Raises FlowError for a wrong function, schema or error policy."""
    mapped = check_function(function, "map", "row", classes=True)
    types, results = _results(function, schema, "map")
    return Map(mapped, types, check_on_error(on_error, "map"), rows, results)


def make_flat_map(function: Any, schema: ResultLike, on_error: str, rows: RowType | None = None) -> FlatMap:
    """Make `flat_map`. Raises FlowError as `make_map` does."""
    expand = check_function(function, "flat_map", "row", yields=True, classes=True)
    types, results = _results(function, schema, "flat_map", many=True)
    return FlatMap(expand, types, check_on_error(on_error, "flat_map"), rows, results)


def make_filter(predicate: Any, on_error: str, rows: RowType | None = None) -> Filter:
    """Make `filter`. Raises FlowError for anything but a function of a row or an expression."""
    return Filter(_predicate(predicate, "filter"), check_on_error(on_error, "filter"), rows)


def make_branch(predicate: Any, on_error: str, rows: RowType | None = None) -> Branch:
    """Make `branch`. Raises FlowError as `make_filter` does."""
    return Branch(_predicate(predicate, "branch"), check_on_error(on_error, "branch"), rows)


def make_map_batches(function: Any, chosen: Any, size: Any, timeout: Duration, event_time: Any, on_error: str) -> MapBatches:
    """Make `map_batches`. Raises FlowError for anything but a function of a batch, and for wrong settings."""
    checked = check_function(function, "map_batches", "batch", classes=True)
    if event_time is not None and (not isinstance(event_time, str) or not event_time):
        raise FlowError(f'map_batches(event_time={event_time!r:.200}): expected the name of a column, for example event_time="ts"')
    longest = microseconds(timeout, "map_batches(timeout=...)")
    policy, given_as = check_on_error(on_error, "map_batches"), check_format(chosen, "map_batches")
    if size is None:
        return MapBatches(checked, policy, given_as, event_time)
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise FlowError(f"map_batches(batch_size={size!r:.200}): expected a whole number of at least 1; without it rows don't wait")
    return MapGathered(checked, policy, given_as, event_time, size, longest)


def make_map_async(
    function: Any,
    concurrency: Any,
    ordered: bool,
    timeout: Duration | None,
    retries: Any,
    backoff: Duration,
    schema: ResultLike,
    on_error: str,
    rows: RowType | None = None,
) -> MapAsync:
    """Make `map_async`. Raises FlowError for anything but an async function of a row, and for wrong settings."""
    check_function(function, "map_async", "row", classes=True, awaited=True)
    if not isinstance(concurrency, int) or isinstance(concurrency, bool) or concurrency < 1:
        raise FlowError(f"map_async(concurrency={concurrency!r}): expected a whole number of at least 1")
    limit = None if timeout is None else seconds(timeout, "map_async(timeout=...)")
    if limit == 0:
        raise FlowError(f"map_async(timeout={timeout!r}): must be longer than zero; None lets a coroutine take as long as it likes")
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise FlowError(f"map_async(retries={retries!r}): expected a whole number, for example 5; 0 calls the function once")
    again = Retries(retries, seconds(backoff, "map_async(backoff=...)"))
    (types, results), policy = _results(function, schema, "map_async"), check_on_error(on_error, "map_async")
    return MapAsync(function, concurrency, bool(ordered), limit, types, policy, again, rows, results)


def make_key_by(keys: tuple[Any, ...], column: Any, rows: RowType | None = None) -> KeyBy | tuple[str, ...]:
    """Make `key_by` for a function of a row, or return the names of the key columns. Raises FlowError for anything else."""
    if not isinstance(column, str) or not column:
        raise FlowError(f'key_by(column={column!r:.200}): expected the name of a new column, for example column="key"')
    if len(keys) == 1 and callable(keys[0]):
        return KeyBy(check_function(keys[0], "key_by", "row"), column, rows)
    if not keys:
        raise FlowError("key_by needs at least one column, or a function")
    if not all(isinstance(key, str) for key in keys) or len(set(keys)) != len(keys):
        raise FlowError(f"key_by{keys!r}: give column names, each once, or one function")
    return keys


def make_select(columns: tuple[Any, ...], computed: Mapping[str, Any]) -> Project | Compute:
    """Make `select`. Raises FlowError unless `columns` are names, and `computed` has expressions."""
    wrong = next((each for each in columns if isinstance(each, Expression)), None)
    if wrong is not None:
        raise FlowError(f"select({wrong!r:.200}): give a computed column a name, for example select(total={wrong!r:.200})")
    if not computed:
        return Project(select=check_columns(columns, "select"))
    names = check_columns(columns, "select") if columns else ()
    twice = next((name for name in (*names, *computed) if (*names, *computed).count(name) > 1), None)
    if twice is not None:
        raise FlowError(f"select: two columns would have the name `{twice}`: choose another for one of them")
    return Compute(_trees(computed, "select"), names)


def make_with_columns(computed: Mapping[str, Any]) -> Compute:
    """Make `with_columns`. Raises FlowError unless `computed` maps names to expressions."""
    if not computed:
        raise FlowError('with_columns(): give at least one column, for example with_columns(total=ef.col("price") * ef.col("qty"))')
    return Compute(_trees(computed, "with_columns"))


def make_drop(columns: tuple[Any, ...]) -> Project:
    """Make `drop`. Raises FlowError unless `columns` are names."""
    return Project(drop=frozenset(check_columns(columns, "drop")))


def make_cast(types: SchemaLike) -> Cast:
    """Make `cast`. Raises FlowError unless `types` maps names to Arrow types or their names."""
    schema = arrow_schema(types, "cast")
    if not schema:
        raise FlowError(f"cast({types!r:.200}): give at least one column with its type, for example cast({{'price': 'float64'}})")
    return Cast(dict(zip(schema.names, schema.types, strict=True)))


def make_rename(renamed: Mapping[str, str]) -> Project:
    """Make `rename`. Raises FlowError unless `renamed` maps names to names."""
    check_columns((*renamed, *renamed.values()), "rename")
    return Project(rename=dict(renamed))


def make_changelog(op: Any, updates: Updates | None) -> Changelog:
    """Make `changelog`. Raises FlowError unless `op` is a name, and the replaced rows of the `updates` are known."""
    if not isinstance(op, str) or not op:
        raise FlowError(f'changelog({op!r:.200}): give the name of a new column, for example changelog("op")')
    if updates is None:
        raise FlowError("changelog() is for streams of updates, and this one is append-only: its rows replace none, so write it as it is")
    if not updates.weighed:
        raise FlowError(
            "changelog() needs to know which rows were replaced: call it behind a running aggregate, or a select, drop, rename, cast, "
            'explode, union, or filter, branch, map, flat_map or key_by with a function (no class) and on_error="stop" of it'
        )
    return Changelog(op)


def make_explode(column: Any, position: Any) -> Explode:
    """Make `explode`. Raises FlowError unless `column` is a name, and `position` another one or None."""
    if not isinstance(column, str):
        raise FlowError(f'explode({column!r:.200}): give the name of a column of lists, for example explode("bids")')
    if position is not None and not isinstance(position, str):
        raise FlowError(f'explode(position={position!r:.200}): expected the name of a new column, for example position="rank"')
    return Explode(column, position)


def make_with_time(time: Any, unit: str, max_delay: Duration, on_error: str, rows: RowType | None = None) -> WithTime:
    """Make `with_time`. Raises FlowError for anything but a column or a function of a row, and for a wrong unit or duration."""
    if not isinstance(time, str):
        check_function(time, "with_time", "row")
    elif not time:
        raise FlowError("with_time(''): expected the name of a column, or a function of (row)")
    try:
        EventTime("time", unit)
    except FlowError as error:
        raise FlowError(f"with_time: {error}") from error
    delay = microseconds(max_delay, "with_time(max_delay=...)")
    return WithTime(time, unit, delay, check_on_error(on_error, "with_time"), rows)


def make_deduplicate(keys: tuple[str, ...], columns: tuple[Any, ...], ttl: Duration | None) -> Deduplicate:
    """Make `deduplicate`; `keys` are the stream's, if it has any. Raises FlowError for wrong columns, no columns, or a wrong duration."""
    if columns or not keys:
        check_columns(columns, "deduplicate")
    if len(set(columns)) < len(columns):
        raise FlowError(f"deduplicate{columns!r:.200}: give each column once")
    lasting = None if ttl is None else microseconds(ttl, "deduplicate(ttl=...)")
    if lasting == 0:
        raise FlowError(f"deduplicate(ttl={ttl!r}): must be longer than zero; without ttl a row passes once for ever")
    return Deduplicate((*keys, *(name for name in columns if name not in keys)), lasting)


def _results(function: Any, schema: ResultLike, method: str, *, many: bool = False) -> tuple[pa.Schema | None, RowType | None]:
    """Return the declared types of a function's results, or their class, which `schema` or its annotation names."""
    if schema is None:
        schema = returned_class(function, many=many)
    return (None, row_type(schema, method)) if is_row_class(schema) else (arrow_schema(schema, method), None)


def _predicate(predicate: Any, method: str) -> Any:
    advice = instead_of_arrow(predicate)
    if advice:
        raise FlowError(f"{method}({short(predicate)}): expected an expression or a function of (row){advice}")
    return predicate if isinstance(predicate, Expression) else check_function(predicate, method, "row", classes=True)


def _trees(computed: Mapping[str, Any], method: str) -> dict[str, Tree]:
    trees = dict[str, Tree]()
    for name, expression in computed.items():
        if not isinstance(name, str) or not name:
            raise FlowError(f"{method}({{{name!r:.200}: ...}}): expected the name of a column")
        if not isinstance(expression, Expression):
            advice = f"ef.col({expression!r:.200}) for a column, ef.lit({expression!r:.200}) for a value"
            how = instead_of_arrow(expression) or f": write {advice}"
            raise FlowError(f"{method}({name}={short(expression)}): expected an expression{how}")
        trees[name] = expression.tree
    return trees
