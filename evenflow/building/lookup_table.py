"""Makes `lookup`, and checks the table before the job runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from ..engine.errors import FlowError, RecordError
from ..engine.functions.error_policy import function_name
from ..engine.keys.table_index import TableIndex
from ..engine.operators.joins.lookup import Lookup
from ..engine.operators.joins.lookup_table import TableOrigin, plain, repeated_key, table_problem
from ..engine.source import Source
from ..engine.time.duration import Duration, seconds
from ..engine.types.frames import FRAMES, frame_as_arrow
from .columns import check_columns, listed_columns


def make_lookup(
    table: Any, on: Any, how: str, columns: Iterable[str] | None, *, unique: bool, suffix: str, refresh: Duration | None
) -> Lookup:
    """Make `lookup`. Raises FlowError for anything but a table, for a missing column, for values that can't be keys, for repeated keys if
    `unique`, and for a `refresh` of anything but a source or a function.
    """
    if how not in ("left", "inner"):
        raise FlowError(f'lookup(how={how!r}): expected "left" or "inner"')
    if not isinstance(suffix, str) or not suffix:
        raise FlowError(f'lookup(suffix={suffix!r}): expected text, for example "_right"')
    wanted = None if columns is None else listed_columns(columns, "lookup")
    origin, again = _origin(table), _refresh(table, refresh)
    operator = Lookup(origin, _pairs(on), how, wanted, unique, suffix, again)  # type: ignore[arg-type]  # how is one of them
    if isinstance(operator.table, pa.Table):
        _check(operator.table, operator)
    return operator


def _check(table: pa.Table, operator: Lookup) -> None:
    problem = table_problem(table, operator.shape)
    if problem is not None:
        raise FlowError(f"lookup: {problem}")
    rows = table if operator.unique else table.slice(0, 0)
    try:
        place = TableIndex([plain(rows[name]) for name in operator.on.values()], "lookup").repeated()
    except RecordError as error:
        raise FlowError(f"lookup: {error.problem}") from error
    if place is not None:
        raise FlowError(f"lookup: {repeated_key(table, operator.shape.keys, place)}")


def _pairs(on: Any) -> dict[str, str]:
    """Map the stream's key columns to the table's."""
    if isinstance(on, str):
        return {on: on}
    if isinstance(on, Mapping):
        check_columns((*on, *on.values()), "lookup(on=...)")
        return dict(on)
    if not isinstance(on, Iterable):
        raise FlowError(f"lookup(on={on!r:.200}): expected a column, a list of columns, or a dict from the stream's columns to the table's")
    names = check_columns(tuple(on), "lookup(on=...)")
    return {name: name for name in names}


def _refresh(table: Any, refresh: Duration | None) -> float | None:
    if refresh is None:
        return None
    try:
        every = seconds(refresh)
    except FlowError as error:
        raise FlowError(f"lookup(refresh={refresh!r}): {error}") from error
    if every <= 0:
        raise FlowError(f'lookup(refresh={refresh!r}): expected a duration above 0, for example "5m"')
    if not (isinstance(table, Source) or _is_function(table)):
        raise FlowError(
            f"lookup(refresh={refresh!r}): a {type(table).__name__} can't be read again: give a bounded source, or a function that returns "
            "the newest table"
        )
    return every


def _is_function(table: Any) -> bool:
    return callable(table) and not isinstance(table, (type, Source, pa.Table))


def _origin(table: Any) -> TableOrigin:
    """Convert the table to Arrow, or return its source or function; a Spark DataFrame is collected."""
    if isinstance(table, Source):
        return table
    if _is_function(table):
        return partial(_called, table)
    found = frame_as_arrow(table, "lookup")
    if found is None:
        raise FlowError(
            f"lookup({type(table).__name__}): expected {FRAMES}, a Spark DataFrame, a source with an end, "
            'for example ef.read_parquet("airports/"), or a function that returns such a table'
        )
    return found


def _called(function: Callable[[], Any]) -> pa.Table:
    """Convert the result of the user's function to Arrow. Raises FlowError for anything but a table."""
    given = function()
    table = frame_as_arrow(given, f"{function_name(function)} of a lookup")
    if table is None:
        problem = f"{function_name(function)} returned a {type(given).__name__}"
        raise FlowError(f"{problem}: a function of a lookup returns {FRAMES}, or a Spark DataFrame")
    return table
