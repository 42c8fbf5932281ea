"""Makes `lookup`: the table from whatever holds one, checked as far as that can be done before the job runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..engine.errors import FlowError, RecordError
from ..engine.keys.table_index import TableIndex
from ..engine.operators.lookup import Lookup, plain, repeated_key, table_problem
from ..engine.source import Source
from .columns import check_columns


def make_lookup(table: Any, on: Any, how: str, columns: Iterable[str] | None, *, unique: bool, suffix: str) -> Lookup:
    """`lookup`. Raises FlowError for what is no table, a column that it hasn't, a key that can't be one, and repeated keys if `unique`."""
    if how not in ("left", "inner"):
        raise FlowError(f'lookup(how={how!r}): expected "left" or "inner"')
    if not isinstance(suffix, str) or not suffix:
        raise FlowError(f'lookup(suffix={suffix!r}): expected text, for example "_right"')
    if isinstance(columns, str):
        raise FlowError(f"lookup(columns={columns!r}): expected a list of column names")
    wanted = None if columns is None else check_columns(tuple(columns), "lookup(columns=...)")
    operator = Lookup(_table(table), _pairs(on), how, wanted, unique, suffix)  # type: ignore[arg-type]  # it is one of them
    if isinstance(operator.table, pa.Table):
        _check(operator.table, operator)
    return operator


def _check(table: pa.Table, operator: Lookup) -> None:
    problem = table_problem(table, operator)
    if problem is not None:
        raise FlowError(f"lookup: {problem}")
    rows = table if operator.unique else table.slice(0, 0)
    try:
        place = TableIndex([plain(rows[name]) for name in operator.on.values()], "lookup").repeated()
    except RecordError as error:
        raise FlowError(f"lookup: {error.problem}") from error
    if place is not None:
        raise FlowError(f"lookup: {repeated_key(table, operator.on, place)}")


def _pairs(on: Any) -> dict[str, str]:
    """The stream's key columns, each with the table's."""
    if isinstance(on, str):
        return {on: on}
    if isinstance(on, Mapping):
        check_columns((*on, *on.values()), "lookup(on=...)")
        return dict(on)
    if not isinstance(on, Iterable):
        raise FlowError(f"lookup(on={on!r:.200}): expected a column, a list of columns, or a dict from the stream's columns to the table's")
    names = check_columns(tuple(on), "lookup(on=...)")
    return {name: name for name in names}


def _table(table: Any) -> pa.Table | Source:
    """The table as Arrow has it; a Spark DataFrame is collected here."""
    package = type(table).__module__.partition(".")[0]
    try:
        if isinstance(table, (pa.Table, Source)):
            return table
        if isinstance(table, pa.RecordBatch):
            return pa.Table.from_batches([table])
        if package == "pandas" and hasattr(table, "columns"):
            return pa.Table.from_pandas(table, preserve_index=False)
        if package == "pyspark" and hasattr(table, "toArrow"):
            return table.toArrow()
    except (pa.ArrowException, TypeError) as error:
        raise FlowError(f"lookup: the {type(table).__name__} can't become an Arrow table: {error}") from error
    raise FlowError(
        f"lookup({type(table).__name__}): expected a pyarrow Table, a pandas or Spark DataFrame, or a source with an end, "
        'for example ef.read_parquet("airports/")'
    )
