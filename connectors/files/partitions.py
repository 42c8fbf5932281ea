"""Hive partitions: rows with the same values of some columns go into one folder, whose name has the values, and not into its files.

Folders are named as Hive and Spark name them: `region=eu/day=2026-01-31`, with `%XX` for characters that have a meaning in paths,
and `__HIVE_DEFAULT_PARTITION__` for null.

>>> rows = pa.record_batch({"region": ["eu", None, "eu"], "n": [1, 2, 3]})
>>> [(folder, part.to_pydict()) for folder, part in Partitions(("region",), "write").split(rows)]
[('region=__HIVE_DEFAULT_PARTITION__', {'n': [2]}), ('region=eu', {'n': [1, 3]})]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...engine.columns import Columns
from ...engine.errors import ConnectorError, FlowError, RecordError

NULL = "__HIVE_DEFAULT_PARTITION__"

LONGEST_NAME, LONGEST_PATH = 255, 700
"""Bytes of a folder's name on most file systems, and of all folders of a partition, below the 1,024 of an object's name on S3."""

_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""The characters that Spark escapes, and the null character."""

_DAYS = (-719_162, 2_932_896)
"""Days since 1970 of the first day of the year 1 and of the last one of the year 9999."""


def partition_columns(columns: str | Iterable[str], operator: str) -> tuple[str, ...]:
    """Return the columns of a user's `partition_by`. Raises FlowError for one that can't name folders."""
    names = (columns,) if isinstance(columns, str) else tuple(columns) if isinstance(columns, Iterable) else (columns,)
    for name in names:
        if not isinstance(name, str) or not name:
            raise FlowError(
                f'operator `{operator}`: partition_by={columns!r:.200}: expected a column or several, for example ("region", "day")'
            )
        if name.startswith(("_", ".")):
            raise FlowError(
                f"operator `{operator}`: partition_by: readers skip folders whose names begin with `{name[0]}`; rename column `{name}`"
            )
    if len(set(names)) < len(names):
        raise FlowError(f"operator `{operator}`: partition_by={columns!r:.200} names a column twice")
    return names


class Partitions:
    """The partition columns of a sink, from the outermost folder to the innermost; none for a sink without partitions."""

    def __init__(self, columns: tuple[str, ...], operator: str) -> None:
        self.columns, self._operator = columns, operator

    def problem(self, columns: Columns) -> str | None:
        """Describe why rows with these known columns can't be partitioned, None if they can."""
        for name in self.columns:
            if columns.lacks(name):
                return f"partition_by: no column `{name}` among {columns.listed()}"
            kind = columns.type_of(name)
            if kind is not None and (problem := _refused(kind)) is not None:
                return f"partition_by: column `{name}` is {kind}: {problem}"
        if self.columns and columns.complete and len(columns.types) == len(self.columns):
            return "partition_by names all columns, and files need one that is not in their folder's name"
        return None

    def check(self, schema: pa.Schema) -> None:
        """Raise ConnectorError if rows of this schema can't be partitioned."""
        problem = self.problem(Columns.of(schema)) if self.columns else None
        if problem is not None:
            raise ConnectorError(f"operator `{self._operator}`: {problem}")

    def in_files(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns that the files have."""
        return pa.schema([field for field in schema if field.name not in self.columns])

    def split(self, rows: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
        """Return folders with their rows, which keep their order and lose the partition columns.

        Raises RecordError for a value that Hive can't express, or whose folder's name would be too long.
        """
        if not self.columns:
            return [("", rows)]
        codes = np.zeros(rows.num_rows, np.int64)
        names: list[list[str]] = []
        for column in self.columns:
            code, segments = self._segments(column, rows)
            names.append(segments)
            codes = codes * len(segments) + code
        files = rows.select([name for name in rows.schema.names if name not in self.columns])
        found, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        folders = [self._folder(int(code), names, rows, int(row)) for code, row in zip(found, first, strict=True)]
        if len(folders) == 1:
            return [(folders[0], files)]
        order = np.argsort(inverse, kind="stable")
        ends = np.cumsum(np.bincount(inverse, minlength=len(folders)))
        sorted_rows = files.take(pa.array(order))
        parts = [sorted_rows.slice(begin, end - begin) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
        return sorted(zip(folders, parts, strict=True), key=lambda part: part[0])

    def _segments(self, name: str, rows: pa.RecordBatch) -> tuple[np.ndarray, list[str]]:
        """Return each row's place among the values of a column, and the folder's name for each value."""
        column = rows.column(name)
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        if pa.types.is_date(plain.type):
            self._check_dates(plain, name, rows)
        encoded = pc.dictionary_encode(plain.cast(pa.string()), null_encoding="encode")
        values = encoded.dictionary.to_pylist()
        for value in values:
            if value in ("", NULL):
                row = pc.index(plain.cast(pa.string()), value).as_py()
                what = "an empty text" if value == "" else repr(value)
                raise RecordError(
                    self._operator,
                    f"partition_by: column `{name}` is {what}, which readers take for null: map it to another text or to None",
                    record=_row(rows, row),
                )
        return encoded.indices.to_numpy(), [f"{_escaped(name)}={NULL if value is None else _escaped(value)}" for value in values]

    def _check_dates(self, days: pa.Array, name: str, rows: pa.RecordBatch) -> None:
        numbers = days.cast(pa.date32()).cast(pa.int32())
        bad = pc.index(pc.or_(pc.less(numbers, _DAYS[0]), pc.greater(numbers, _DAYS[1])), True).as_py()
        if bad >= 0:
            problem = f"partition_by: column `{name}` is a date outside of the years 1 to 9999, which readers don't know"
            raise RecordError(self._operator, problem, record={name: f"{numbers[bad].as_py()} days after 1970-01-01"})

    def _folder(self, code: int, names: Sequence[list[str]], rows: pa.RecordBatch, row: int) -> str:
        parts = list[str]()
        for segments in reversed(names):
            code, place = divmod(code, len(segments))
            parts.append(segments[place])
        folder = "/".join(reversed(parts))
        sizes = [len(part.encode()) for part in parts]
        if max(sizes) > LONGEST_NAME or len(folder.encode()) > LONGEST_PATH:
            problem = f"partition_by: a folder's name would have {max(sizes)} bytes, and all of them {len(folder.encode())}"
            advice = f"at most {LONGEST_NAME} and {LONGEST_PATH} are possible: map the column to shorter texts"
            raise RecordError(self._operator, f"{problem}; {advice}", record=_row(rows, row))
        return folder


def _refused(kind: pa.DataType) -> str | None:
    """Return why a column of this type can't be a partition column, or None if it can."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    allowed = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_integer, pa.types.is_boolean,
               pa.types.is_date, pa.types.is_null)  # fmt: skip
    if any(check(value) for check in allowed):
        return None
    return "folders can be named by texts, integers, booleans and dates; cast() it to one of these"


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _row(rows: pa.RecordBatch, row: int) -> dict[str, object]:
    return dict(rows.slice(row, 1).to_pylist()[0])
