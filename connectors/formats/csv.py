r"""The source of CSV files, with a header line or with column names from the user.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv")
>>> _ = path.write_text("word,n\na,1\n,2\n")
>>> source = read_csv(path)
>>> source.start()
>>> source.reader(0, 1).poll(10).to_rows()
[{'word': 'a', 'n': 1}, {'word': None, 'n': 2}]
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import repeat
from typing import Literal, NoReturn

import pyarrow as pa
import pyarrow.csv as arrow_csv

from ...engine.errors import ConnectorError, FlowError
from ...engine.needed import Needed
from ...engine.time.duration import Duration
from ...engine.time.event_time import EventTime
from ..files.compression import ENDINGS, Compression
from ..files.paths import Paths
from ..files.splits import Split
from ..followed.follow import Follow, follow_of
from ..followed.growing import LineBlock
from ..quiet import FOLLOWED, event_time_of
from .file_source import FIRST_BYTES
from .floats import FloatPart, float_parts
from .inferred import START, InferredSource, Types, explained

LEAST_ROWS = 16_384
"""The least rows of a batch, which joins several blocks.

With fewer, the number of batches dominates the cost of a flow. Larger blocks don't fit into the processor's cache: decoding them
costs more than joining small ones.
"""

ENCODING = 'say how it is encoded, for example encoding="latin-1", or give the column the type "binary" in `schema`'


def read_csv(
    path: Paths,
    *,
    event_time: str | None = None,
    unit: str = "ms",
    max_delay: Duration = 0,
    idle_after: Duration | None = None,
    delimiter: str = ",",
    column_names: Sequence[str] | None = None,
    schema: Types | None = None,
    null_values: Sequence[str] = ("",),
    encoding: str = "utf-8",
    compression: Compression = "infer",
    follow: bool | Literal["lines"] = False,
    poll_every: Duration = "1s",
    max_age: Duration = "7d",
    name: str = "read_csv",
) -> CsvSource:
    """Read rows of CSV files: a file (also compressed), a folder (all `*.csv` below it, also `*.csv.gz` and so on), a glob, or a
    list of these.

    Each file begins with the same header line, or has none if `column_names` is given. `schema` sets the types of some or all
    columns; the others' types are inferred from the first megabyte of each file. An unquoted value in `null_values` is null. Each
    file is read by one worker, in order. `path` may have URLs and partition folders, as in `read_parquet`.
    `encoding` is one of Python's, such as "latin-1" or "utf-16". `event_time`, `unit` and `max_delay` are as in `read_parquet`.
    `compression` is "infer" (by the endings .gz, .bz2, .zst and .lz4), "gzip", "bz2", "zstd", "lz4", or None.

    A float of a declared type is rounded to it. In a column without one, an integer beyond 2**53 among floats raises
    ConnectorError if a float can't hold it, and so does a number that is too large for its column. The error names file, row,
    column and value.

    Raises ConnectorError that names the file and the preceding row for a row with too few or too many values or a value of a
    wrong type, and for text in another encoding. Raises ConnectorError that names the file if a compressed file is truncated or
    damaged.

    Columns that the flow never reads are not decoded after the first megabyte, so their values aren't checked; `flow.explain()`
    shows which are read.

    With up to 1,000 files, the source looks at the first rows of each in advance. `max_delay` promises that no row is further
    behind the first row of its file, so an unread file holds event time back only to there. With more files, event time waits
    until all have been read.

    `follow`, `poll_every`, `max_age` and `idle_after` are as in `read_parquet`. If there is no file at the start, `schema` must have all
    columns. With `follow="lines"` files may also grow, as in `read_text`; then a value can't contain a line end.
    """
    spec = event_time_of(event_time, unit, max_delay, idle_after, name=name, ends=None if follow else FOLLOWED)
    names = None if column_names is None else list(column_names)
    followed = follow_of(follow, poll_every, max_age, name)
    return CsvSource(path, spec, schema, delimiter, names, list(null_values), _encoding(encoding, name), compression, followed, name)


def _encoding(encoding: str, operator: str) -> str:
    """Return Python's name of the encoding, and `utf8` for UTF-8, which Arrow reads itself."""
    try:
        found = codecs.lookup(encoding).name
    except (LookupError, TypeError) as error:
        raise FlowError(f'operator `{operator}`: encoding {encoding!r} is unknown: use one of Python\'s, for example "latin-1"') from error
    return "utf8" if found == "utf-8" else found


class CsvSource(InferredSource):
    """A source of CSV files: each file is a split, and all have the same columns."""

    extensions = tuple(".csv" + ending for ending in ENDINGS)

    def __init__(
        self,
        paths: Paths,
        event_time: EventTime | None,
        types: Types | None,
        delimiter: str,
        column_names: list[str] | None,
        null_values: list[str],
        encoding: str,
        compression: Compression,
        follow: Follow | None,
        name: str,
    ) -> None:
        super().__init__(paths, event_time, types, compression, follow, name)
        self._delimiter, self._column_names, self._null_values, self._encoding = delimiter, column_names, null_values, encoding
        self._all = self._schema
        self._checked = b""
        self.has_header = column_names is None
        if follow is not None and follow.lines and "\n".encode(encoding) != b"\n":
            raise FlowError(f"operator `{name}`: files that grow can't be encoded as {encoding}, whose line ends are not one byte")

    def reading(self, needed: Needed) -> CsvSource:
        return self._reading(needed)

    def _plan(self, files: Sequence[str]) -> list[Split]:
        splits = super()._plan(files)
        self._all = self._schema
        self.narrow()
        return splits

    def narrow(self) -> None:
        self._schema = self._to_read(self._all)

    def admit(self, path: str) -> bool:
        if not super().admit(path):
            return False
        with explained(self.name, path, advise=self._advice), self._reader(self._file(path), self._given, FIRST_BYTES) as reader:
            self._check_header(path, reader.schema.names)
        return True

    def decode(self, path: str, block: LineBlock) -> pa.RecordBatch:
        if not block.lines.strip():
            return pa.RecordBatch.from_pylist([], self._schema)
        lines = block.header + block.lines
        with explained(self.name, path, f" before byte {block.end}", self._advice):
            if self.has_header and block.header != self._checked:
                with self._reader(pa.BufferReader(lines), self._given, len(lines)) as reader:
                    self._check_header(path, reader.schema.names)
                self._checked = block.header
            blocks = self._blocks(lambda: pa.BufferReader(lines), path, f"after byte {block.end - len(block.lines)}, in row", len(lines))
            return pa.concat_batches(list(blocks))

    def _check_header(self, path: str, names: Sequence[str]) -> None:
        there = [*names, *(name for name in self.folders.of(path) if name not in names)]
        if sorted(there) != sorted(self._all.names):
            found, others = ", ".join(there), ", ".join(self._all.names)
            raise ConnectorError(f"operator `{self.name}`: {path} has the columns {found}, but the files before it have {others}")

    def _peek(self, path: str) -> pa.Schema:
        with self._reader(self._file(path), self._given) as reader:
            schema = reader.schema
            names = [field.name for field in schema if pa.types.is_binary(field.type)]
            undecoded = [name for name in names if name not in self._given.names]
            if undecoded:
                self._refuse_bytes(path, undecoded[0], reader)
            return schema

    def _refuse_bytes(self, path: str, name: str, reader: arrow_csv.CSVStreamingReader) -> NoReturn:
        """Raise ConnectorError for a column that Arrow read as binary because its first block has text that is not UTF-8."""
        for place, value in enumerate(reader.read_next_batch().column(name).to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError as error:
                problem = f"column `{name}` is not {self._encoding} in row {place + 1}: {value!r:.200}"
                raise ConnectorError(f"operator `{self.name}`: {path} can't be read: {problem}; {ENCODING}") from error
        raise ConnectorError(f"operator `{self.name}`: {path} can't be read: column `{name}` is not {self._encoding}; {ENCODING}")

    def _advice(self, problem: str) -> str:
        if "halffloat" in problem:
            return "declare float32 in `schema`, and cast it"
        return ENCODING if any(word in problem for word in ("UTF8", "UTF-", "codec can't decode")) else super()._advice(problem)

    def _stream(self, path: str) -> Iterator[pa.RecordBatch]:
        blocks, rows = list[pa.RecordBatch](), 0
        for block in self._blocks(lambda: self._file(path), path, "in row"):
            blocks.append(block)
            rows += block.num_rows
            if rows >= LEAST_ROWS:
                yield blocks[0] if len(blocks) == 1 else pa.concat_batches(blocks)
                blocks, rows = [], 0
        if blocks:
            yield pa.concat_batches(blocks)

    def _blocks(self, file: Callable[[], pa.NativeFile], path: str, place: str, size: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `file` in blocks of `size` bytes.

        If a block has a float that has to be compared with its text, the file is opened again, and those columns are read as texts
        too.
        """
        schema = self._in_file(file, path)
        parts, given, compared = float_parts(schema, self._given), 0, list[FloatPart]()
        while True:
            before, more = 0, list[FloatPart]()
            types = pa.schema([(part.column, pa.string()) for part in compared])
            with (
                self._reader(file(), schema, size, schema.names) as reader,
                self._reader(file(), types, size, types.names) if compared else nullcontext(repeat(None)) as texts,
            ):
                for block, text in zip(reader, texts):  # noqa: B905 -- `repeat` has no end
                    before += block.num_rows
                    if before <= given:
                        continue
                    more = [part for part in parts if part not in compared and part.may_differ(block)]
                    if more:
                        break
                    if text is not None:
                        with self._unchanged(path, place, given + 1):
                            for part in compared:
                                part.compare(block.column(part.column), text.column(part.column))
                    yield self.folders.completed(block, path, self._schema)
                    given = before
            if not more:
                return
            compared += more

    def _first_rows(self, split: Split) -> pa.RecordBatch | None:
        schema = self._in_file(lambda: self._file(split.path), split.path)
        with self._reader(self._file(split.path), schema, FIRST_BYTES, schema.names) as reader:
            rows = next(reader, None)
            return rows if rows is None else self.folders.completed(rows, split.path, self._schema)

    def _in_file(self, file: Callable[[], pa.NativeFile], path: str) -> pa.Schema:
        """Return the columns to read from a file: those that only its folders have are not in it. At least one, for the rows."""
        if self.folders.of(path).keys().isdisjoint(self._schema.names):
            return self._schema
        if (names := self._column_names) is None:
            with self._reader(file(), self._given) as reader:
                names = reader.schema.names
        there = [field for field in self._schema if field.name in names]
        return pa.schema(there or [next(field for field in self._all if field.name in names)])

    def _has_rows(self, start: bytes) -> bool:
        lines = len(start.strip().splitlines())
        return lines > (0 if self._column_names else 1) or len(start) == START

    def _reader(
        self, file: pa.NativeFile, types: pa.Schema, block: int | None = None, columns: Sequence[str] | None = None
    ) -> arrow_csv.CSVStreamingReader:
        return arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=block, column_names=self._column_names, encoding=self._encoding
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=columns,
                null_values=self._null_values,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _merge(self, first: str, merged: pa.Schema, path: str, found: pa.Schema) -> pa.Schema:
        if found.names != merged.names:
            raise ConnectorError(
                f"operator `{self.name}`: {path} has the columns {', '.join(found.names)}, but {first} has {', '.join(merged.names)}"
            )
        return super()._merge(first, merged, path, found)
