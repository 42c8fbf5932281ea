"""Row groups of Parquet files without a row that meets a condition, found by the files' statistics.

Columns of types whose statistics are exact or bounds count: whole numbers, booleans, dates, times, texts. Floats don't, since NaN is
greater than all numbers here and is not in their statistics.

>>> import pyarrow.parquet as pq, tempfile
>>> from ...engine.expressions.expression import col
>>> path = tempfile.mkdtemp() + "/a.parquet"
>>> pq.write_table(pa.table({"n": [1, 2, 3, 4]}), path, row_group_size=2)
>>> with pq.ParquetFile(path) as file:
...     [none_meets([(col("n") > 2).tree], GroupBounds(file, groups).of) for groups in ((0, 1), (1, 2), (0, 2))]
[True, False, False]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...engine.batch import Batch
from ...engine.expressions.evaluation import Condition
from ...engine.expressions.trees.tree import Call, Tree
from ...engine.plan.filtered_sources import compared_column
from ...state.errors import EvenflowError

Bounds = Callable[[str], pa.Array | None]
"""The least and the greatest value of a column, shape (2,), nulls if all its values are; None if they aren't known."""


def none_meets(conditions: Iterable[Tree], bounds: Bounds) -> bool:
    """Return True if certainly no row meets all conditions."""
    for condition in conditions:
        column = compared_column(condition)
        values = None if column is None else bounds(column)
        if column is not None and values is not None and _excludes(condition, column, values):
            return True
    return False


def _excludes(condition: Tree, column: str, values: pa.Array) -> bool:
    """Return True if no value between these two meets a comparison."""
    assert isinstance(condition, Call)
    if values.null_count:
        return True  # a comparison with null is not true
    batch = Batch(pa.record_batch([values], [column]))

    def met(name: str) -> list[bool]:
        found: list[bool] = Condition(Call(name, condition.arguments), "").true_rows(batch).tolist()
        return found

    try:
        return all(met("lt")) or all(met("gt")) if condition.name == "eq" else not any(met(condition.name))
    except EvenflowError:  # the filter reports it
        return False


class GroupBounds:
    """The bounds of a file's columns in a half-open range of row groups."""

    def __init__(self, file: pq.ParquetFile, groups: tuple[int, int]) -> None:
        self._metadata, self._schema, self._groups = file.metadata, file.schema_arrow, groups
        self._leaves = {self._metadata.schema.column(leaf).path: leaf for leaf in range(self._metadata.num_columns)}

    def of(self, column: str) -> pa.Array | None:
        """Return the bounds of a column."""
        if column not in self._leaves or not _has_exact_bounds(kind := self._schema.field(column).type):
            return None
        if self._metadata.schema.column(self._leaves[column]).physical_type == "INT96":
            return None
        found: list[Any] = []
        for group in range(*self._groups):
            statistics = self._metadata.row_group(group).column(self._leaves[column]).statistics
            if statistics is None or not statistics.has_min_max:
                return None
            found += [statistics.min, statistics.max]
        try:
            return pa.array([min(found), max(found)], kind) if found else None
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None


def _has_exact_bounds(kind: pa.DataType) -> bool:
    kinds = pa.types
    exact = (kinds.is_signed_integer, kinds.is_boolean, kinds.is_string, kinds.is_large_string, kinds.is_date32, kinds.is_timestamp)
    return any(is_kind(kind) for is_kind in exact) and getattr(kind, "unit", "us") != "ns"
