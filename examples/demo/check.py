"""Exact comparison of the rows of two tables, in any order.

>>> import pyarrow as pa
>>> compare(pa.table({"n": [1, 2]}), pa.table({"n": [2, 1]})).equal
True
>>> compare(pa.table({"n": [1, 1]}), pa.table({"n": [1]})).unexpected
[(1,)]
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison. `rows`: expected. `missing`, `unexpected`: rows in only the expected, only the actual table."""

    rows: int
    columns: tuple[str, ...]
    missing: list[tuple[Any, ...]]
    unexpected: list[tuple[Any, ...]]

    @property
    def equal(self) -> bool:
        return not self.missing and not self.unexpected and self.rows > 0


def compare(actual: pa.Table, expected: pa.Table) -> Comparison:
    columns = tuple(expected.column_names)
    if _sorted(actual, columns).equals(_sorted(expected, columns)):
        return Comparison(expected.num_rows, columns, [], [])
    got, wanted = Counter(_rows(actual, columns)), Counter(_rows(expected, columns))
    return Comparison(expected.num_rows, columns, list((wanted - got).elements()), list((got - wanted).elements()))


def _sorted(table: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """Return the rows in an order of their own, without the metadata."""
    return table.select(columns).sort_by([(name, "ascending") for name in columns]).combine_chunks().replace_schema_metadata()


def _rows(table: pa.Table, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))
