r"""The source of newline-delimited JSON files: one object per line, whose fields are the columns.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp(), "a.json")
>>> _ = path.write_text('{"word": "a", "n": 1}\n{"word": "b"}\n')
>>> source = read_json(path)
>>> source.start()
>>> source.reader(0, 1).poll(10).to_rows()
[{'word': 'a', 'n': 1}, {'word': 'b', 'n': None}]
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import pyarrow as pa
import pyarrow.json as arrow_json

from ...engine.errors import ConnectorError
from ...engine.time.duration import Duration
from ..files.compression import ENDINGS, Compression
from ..files.paths import Paths
from ..files.splits import Split
from ..followed.follow import follow_of
from ..followed.growing import LineBlock
from ..quiet import FOLLOWED, event_time_of
from .file_source import FIRST_BYTES
from .floats import ChangedValue
from .inferred import InferredSource, Types, explained
from .json_types import JsonTypes, read_types, restored, with_zones
from .text import whole_lines


def read_json(
    path: Paths,
    *,
    event_time: str | None = None,
    unit: str = "ms",
    max_delay: Duration = 0,
    idle_after: Duration | None = None,
    schema: Types | None = None,
    compression: Compression = "infer",
    follow: bool | Literal["lines"] = False,
    poll_every: Duration = "1s",
    max_age: Duration = "7d",
    name: str = "read_json",
) -> JsonSource:
    """Read newline-delimited JSON: a file (also compressed), a folder (all `*.json`, `*.jsonl`, `*.ndjson`), a glob, or a list of
    these.

    `schema` sets the types of some or all columns; the others' types are inferred from the first megabyte of each file. A field
    that an object lacks is null. Each file is read by one worker, in order. `path` may have URLs and partition folders, as in
    `read_parquet`; an object that lacks the column of its folder has the folder's value. `event_time`, `unit` and
    `max_delay` are as in `read_parquet`, `compression` as in `read_csv`.

    Numbers that a column can't hold are as in `read_csv`. Times without a declared type are `timestamp[s]`, with the zone UTC if
    their texts have zones; a column with both kinds of text raises ConnectorError. Where a declared timestamp has no zone, a text
    with one is its time in UTC.

    Raises ConnectorError that names the file and the preceding row for a line that is not an object, a wrong type, and a field
    that first occurs after the first megabyte. Raises ConnectorError that names the file if a compressed file is truncated or
    damaged.

    With up to 1,000 files, the source looks at the first rows of each in advance, as in `read_csv`: an unread file holds event
    time back only to its first row less `max_delay`.

    `follow`, `poll_every`, `max_age` and `idle_after` are as in `read_parquet`. If there is no file at the start, `schema` must have all
    columns. With `follow="lines"` files may also grow, as in `read_text`.
    """
    spec = event_time_of(event_time, unit, max_delay, idle_after, name=name, ends=None if follow else FOLLOWED)
    return JsonSource(path, spec, schema, compression, follow_of(follow, poll_every, max_age, name), name)


class JsonSource(InferredSource):
    """A source of JSON files: each file is a split; the columns are all fields in the files' first blocks."""

    extensions = tuple(kind + ending for kind in (".json", ".jsonl", ".ndjson") for ending in ENDINGS)

    def _peek(self, path: str) -> pa.Schema:
        types = read_types(self._given, self._given)
        found = restored(_reader(self._file(path), types, "infer").schema, self._given)
        return with_zones(found, self._given, lambda texts: _reader(self._file(path), texts, "error").read_next_batch())

    def decode(self, path: str, block: LineBlock) -> pa.RecordBatch:
        if not block.lines.strip():
            return pa.RecordBatch.from_pylist([], self._schema)
        with explained(self.name, path, f" before byte {block.end}", self._advice):
            rows = self._compared(block.lines, self._types, path, f"after byte {block.end - len(block.lines)}, in row", 1)
            return self.folders.completed(rows, path, self._schema, fill=True)

    @property
    def _types(self) -> JsonTypes:
        return JsonTypes(self._schema, self._given)

    def _stream(self, path: str) -> Iterator[pa.RecordBatch]:
        given = 0
        try:
            for rows in self._batches(path):
                yield self.folders.completed(rows, path, self._schema, fill=True)
                given += rows.num_rows
        except pa.ArrowInvalid as error:
            if "unexpected field" not in str(error) or (found := new_field(self._file(path), self._schema, given)) is None:
                raise
            row, field = found
            raise ConnectorError(
                f"operator `{self.name}`: {path} has a field `{field}` in row {row} that none of the files has in its first megabyte; "
                f"give it a type, so that rows without it have a null: schema={{{field.partition('.')[0]!r}: ...}}"
            ) from error

    def _batches(self, path: str) -> Iterator[pa.RecordBatch]:
        """Yield the file's rows; from the first value that has to be compared with its text, in blocks of whole lines."""
        types, given = self._types, 0
        for rows in _reader(self._file(path), types.read, "error"):
            rows.validate(full=True)  # Arrow takes any bytes for text
            if types.may_differ(rows):
                break
            with self._unchanged(path, "in row", given + 1):
                converted = types.converted(rows)
            yield converted
            given += rows.num_rows
        else:
            return
        before = 0
        for lines in whole_lines(path, self._compression, self.name):
            if lines.strip():
                rows = self._compared(lines, types, path, "in row", before + 1)
                yield rows.slice(max(0, given - before))
                before += rows.num_rows

    def _compared(self, lines: bytes, types: JsonTypes, path: str, place: str, first: int) -> pa.RecordBatch:
        table = _reader(pa.BufferReader(lines), types.read, "error", len(lines)).read_all()
        table.validate(full=True)
        rows = table.combine_chunks().to_batches()[0]
        with self._unchanged(path, place, first):
            types.check(lines, rows)
            return types.converted(rows)

    def _advice(self, problem: str) -> str:
        return "JSON is UTF-8: convert the file" if "UTF8" in problem else super()._advice(problem)

    def _first_rows(self, split: Split) -> pa.RecordBatch | None:
        types = self._types
        rows = next(_reader(self._file(split.path), types.read, "error", FIRST_BYTES), None)
        with suppress(ChangedValue):  # the worker that reads the file reports it
            return rows if rows is None else self.folders.completed(types.converted(rows), split.path, self._schema, fill=True)
        return None


def new_field(file: pa.NativeFile, schema: pa.Schema, after: int = 0) -> tuple[int, str] | None:
    """Find the first row (from 1) after row `after` with a field that the schema lacks; return its number and the field's path,
    or None.
    """
    with file:
        for row, line in enumerate(filter(bytes.strip, io.BufferedReader(file)), 1):
            if row > after and (field := _unknown(json.loads(line), pa.struct(schema))) is not None:
                return row, field
    return None


def _unknown(value: Any, kind: pa.DataType) -> str | None:
    """Return the path of the value's first field that its type lacks."""
    if isinstance(value, list) and pa.types.is_list(kind):
        return next((found for item in value if (found := _unknown(item, kind.value_type)) is not None), None)
    if not isinstance(value, dict) or not pa.types.is_struct(kind):
        return None
    for name, part in value.items():
        place = kind.get_field_index(name)
        if place < 0:
            return str(name)
        if (found := _unknown(part, kind.field(place).type)) is not None:
            return f"{name}.{found}"
    return None


def _reader(file: pa.NativeFile, types: pa.Schema, other_fields: str, block: int | None = None) -> arrow_json.JSONStreamingReader:
    options = arrow_json.ParseOptions(explicit_schema=types, unexpected_field_behavior=other_fields)
    return arrow_json.open_json(file, arrow_json.ReadOptions(use_threads=False, block_size=block), options)
