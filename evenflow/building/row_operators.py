"""Makes the operators that take rows one by one, or batch by batch, without keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from ..engine.errors import FlowError
from ..engine.functions.error_policy import check_on_error
from ..engine.functions.rows_encoder import SchemaLike, arrow_schema
from ..engine.functions.user_function import check_function
from ..engine.operators.rows.branch import Branch
from ..engine.operators.rows.cast import Cast
from ..engine.operators.rows.filter import Filter
from ..engine.operators.rows.flat_map import FlatMap
from ..engine.operators.rows.map import Map
from ..engine.operators.rows.map_async import MapAsync
from ..engine.operators.rows.map_batches import MapBatches
from ..engine.operators.rows.project import Project
from ..engine.time.duration import Duration, seconds
from .columns import check_columns


def make_map(function: Any, schema: SchemaLike, on_error: str) -> Map:
    """`map`. Raises FlowError for what is no function of a row, a schema or an error policy."""
    return Map(check_function(function, "map", "row", classes=True), arrow_schema(schema, "map"), check_on_error(on_error, "map"))


def make_flat_map(function: Any, schema: SchemaLike, on_error: str) -> FlatMap:
    """`flat_map`. Raises FlowError as `make_map` does."""
    expand = check_function(function, "flat_map", "row", yields=True, classes=True)
    return FlatMap(expand, arrow_schema(schema, "flat_map"), check_on_error(on_error, "flat_map"))


def make_filter(predicate: Any, on_error: str) -> Filter:
    """`filter`. Raises FlowError for what is neither a function of a row nor an expression."""
    return Filter(_predicate(predicate, "filter"), check_on_error(on_error, "filter"))


def make_branch(predicate: Any, on_error: str) -> Branch:
    """`branch`. Raises FlowError as `make_filter` does."""
    return Branch(_predicate(predicate, "branch"), check_on_error(on_error, "branch"))


def make_map_batches(function: Any, on_error: str) -> MapBatches:
    """`map_batches`. Raises FlowError for what is no function of a batch."""
    return MapBatches(check_function(function, "map_batches", "batch", classes=True), check_on_error(on_error, "map_batches"))


def make_map_async(function: Any, concurrency: Any, ordered: bool, timeout: Duration | None, schema: SchemaLike, on_error: str) -> MapAsync:
    """`map_async`. Raises FlowError for what is no async function of a row, and for a number or a time that none can wait for."""
    check_function(function, "map_async", "row", classes=True, awaited=True)
    if not isinstance(concurrency, int) or isinstance(concurrency, bool) or concurrency < 1:
        raise FlowError(f"map_async(concurrency={concurrency!r}): expected a whole number of at least 1")
    limit = None if timeout is None else seconds(timeout, "map_async(timeout=...)")
    if limit == 0:
        raise FlowError(f"map_async(timeout={timeout!r}): must be longer than zero; None lets a coroutine take as long as it likes")
    types, policy = arrow_schema(schema, "map_async"), check_on_error(on_error, "map_async")
    return MapAsync(function, concurrency, bool(ordered), limit, types, policy)


def make_select(columns: tuple[Any, ...]) -> Project:
    """`select`. Raises FlowError unless `columns` are names."""
    return Project(select=check_columns(columns, "select"))


def make_drop(columns: tuple[Any, ...]) -> Project:
    """`drop`. Raises FlowError unless `columns` are names."""
    return Project(drop=frozenset(check_columns(columns, "drop")))


def make_cast(types: SchemaLike) -> Cast:
    """`cast`. Raises FlowError unless `types` maps names to Arrow types or their names."""
    schema = arrow_schema(types, "cast")
    if not schema:
        raise FlowError(f"cast({types!r:.200}): give at least one column with its type, for example cast({{'price': 'float64'}})")
    return Cast(dict(zip(schema.names, schema.types, strict=True)))


def make_rename(renamed: Mapping[str, str]) -> Project:
    """`rename`. Raises FlowError unless `renamed` maps names to names."""
    check_columns((*renamed, *renamed.values()), "rename")
    return Project(rename=dict(renamed))


def _predicate(predicate: Any, method: str) -> Any:
    return predicate if isinstance(predicate, pc.Expression) else check_function(predicate, method, "row", classes=True)
