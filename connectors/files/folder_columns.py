"""Columns whose values are in the names of folders, as Hive, Spark and `write_parquet(partition_by=)` write them.

Only folders below a source's path count, or from the first wildcard of its glob on. Values are texts unless a type is declared:
nothing is guessed, so `007` stays.

>>> columns = FolderColumns(("/in",), "read")
>>> columns.of("/in/region=a%2Fb/day=__HIVE_DEFAULT_PARTITION__/part-0.parquet")
{'region': 'a/b', 'day': None}
>>> rows = pa.record_batch({"n": [1, 2]})
>>> columns.completed(rows, "/in/year=2026/a.csv", pa.schema({"n": pa.int64(), "year": pa.int32()})).to_pylist()
[{'n': 1, 'year': 2026}, {'n': 2, 'year': 2026}]
"""

from __future__ import annotations

import glob
from collections.abc import Iterable
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ...engine.errors import ConnectorError
from .partitions import NULL


class FolderColumns:
    """The columns of the folders below the paths of a source."""

    def __init__(self, paths: Iterable[str], operator: str) -> None:
        given = tuple(paths)
        self._paths, self._operator = frozenset(given), operator
        self._roots = [_root(path) for path in given]
        self._known = dict[str, dict[str, str | None]]()

    def of(self, path: str) -> dict[str, str | None]:
        """Return the values in the names of a file's folders, from the outermost. Raises ConnectorError for a malformed name."""
        if path in self._paths:
            return {}
        folder = path.rpartition("/")[0]
        if folder not in self._known:
            self._known[folder] = self._parsed(folder)
        return self._known[folder]

    def check_same(self, path: str, other: str) -> None:
        """Raise ConnectorError if the folders of two files have different columns."""
        here, there = self.of(path), self.of(other)
        name = next(iter(here.keys() ^ there.keys()), None)
        if name is not None:
            has, lacks = (path, other) if name in here else (other, path)
            raise ConnectorError(
                f"operator `{self._operator}`: {has} is in a folder `{name}=...`, and {lacks} isn't; all files need the same columns"
            )

    def refuse(self, path: str) -> None:
        """Raise ConnectorError if a file is in a folder with a value, unless a glob names that folder."""
        root = next((root for root in self._roots if _is_below(path, root)), "")
        if root in self._paths and self.of(path):
            raise ConnectorError(
                f"operator `{self._operator}`: {path} is in a partition folder, and its rows have no column for the value; to read them "
                f"without it, give the glob {root}/*/*"
            )

    def with_types(self, path: str, schema: pa.Schema, declared: pa.Schema) -> pa.Schema:
        """Return the columns of a file, `schema`, and behind them those of its folders, with their declared types.

        Raises ConnectorError if a value doesn't fit its type, or the file has the column with another one.
        """
        for name in self.of(path):
            place = schema.names.index(name) if name in schema.names else len(schema)
            there = schema.types[place] if place < len(schema) else pa.null()
            kind = declared.field(name).type if name in declared.names else None
            if kind is not None and not pa.types.is_null(there) and kind != there:
                raise ConnectorError(
                    f"operator `{self._operator}`: column `{name}` is {there} in {path}, whose folder has it too, and {kind} in `schema`"
                )
            field = pa.field(name, (kind or pa.string()) if pa.types.is_null(there) else there)
            self.value(path, field)
            schema = schema.set(place, field) if place < len(schema) else schema.append(field)
        return schema

    def value(self, path: str, field: pa.Field) -> pa.Scalar:
        """Return the value of a file's folder as this column has it. Raises ConnectorError if its type has no such value."""
        text, kind = self.of(path)[field.name], _plain(field.type)
        if text is None or pa.types.is_null(kind):
            return pa.scalar(None, kind)
        try:
            return pa.array([text]).cast(kind)[0]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ConnectorError(
                f"operator `{self._operator}`: {path}: the folder `{field.name}={text}` has no value of the type {kind}: {error}; give "
                f"`{field.name}` another type in `schema`"
            ) from error

    def completed(self, rows: pa.RecordBatch, path: str, schema: pa.Schema, *, fill: bool = False) -> pa.RecordBatch:
        """Return rows of a file with the columns of its folders that `schema` has, and without others that it lacks.

        `fill`: a null in the file takes the folder's value. Raises ConnectorError if another value in the file differs from it.
        """
        if not self.of(path):
            return rows
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        for name in self.of(path):
            if name not in schema.names:
                continue
            value = self.value(path, schema.field(name))
            column = columns.get(name)
            if fill and column is not None and value.is_valid:
                column = pc.fill_null(column, value) if column.null_count < len(column) else None
            if column is None:
                columns[name] = pa.repeat(value, rows.num_rows).cast(schema.field(name).type)
            else:
                self._check(column, value, name, path)
                columns[name] = column
        names = [name for name in schema.names if name in columns]
        return pa.RecordBatch.from_arrays([columns[name] for name in names], names)

    def _check(self, column: pa.Array, value: pa.Scalar, name: str, path: str) -> None:
        plain = column.cast(value.type)
        same = pc.equal(plain, value).fill_null(False) if value.is_valid else plain.is_null()
        place = pc.index(same, False).as_py()
        if place >= 0:
            raise ConnectorError(
                f"operator `{self._operator}`: {path}: column `{name}` is {plain[place].as_py()!r:.200} in the file, and its folder says "
                f"{value.as_py()!r:.200}; move the file, or correct its column"
            )

    def _parsed(self, folder: str) -> dict[str, str | None]:
        root = next((root for root in self._roots if _is_below(folder + "/", root)), folder)
        values = dict[str, str | None]()
        for part in folder[len(root) :].split("/"):
            name, sign, text = part.partition("=")
            if not sign:
                continue
            try:
                name, value = unquote(name, errors="strict"), unquote(text, errors="strict")
            except UnicodeDecodeError as error:
                raise self._malformed(folder, part, "is not UTF-8") from error
            if not name or name in values:
                raise self._malformed(folder, part, "names a column twice" if name else "has no column")
            if not value:
                raise self._malformed(folder, part, f"has no value; that of null is {NULL}")
            values[name] = None if value == NULL else value
        return values

    def _malformed(self, folder: str, part: str, problem: str) -> ConnectorError:
        return ConnectorError(f"operator `{self._operator}`: folder {folder}: `{part}` {problem}; rename it")


def _root(path: str) -> str:
    """Return the folder below which the names of folders count."""
    parts = path.split("/")
    fixed = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return "/".join(parts[:fixed]).rstrip("/")


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root + "/")


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
