r"""The source of text files: one row per line, in the column `item`.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
>>> _ = path.write_text("to be\n\nor not\n")
>>> source = read_text(path)
>>> source.start()
>>> source.reader(0, 1).poll(10).to_rows()
[{'item': 'to be'}, {'item': ''}, {'item': 'or not'}]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...engine.batch import ITEM
from ...engine.columns import Columns
from ...engine.errors import ConnectorError
from ...engine.time.duration import Duration
from ..files.compression import ENDINGS, Compression, open_file
from ..files.paths import Paths
from ..files.splits import Split
from ..followed.follow import Follow, follow_of
from ..followed.growing import LineBlock
from .file_source import whole_files
from .lines_source import LinesSource

BLOCK = 1 << 20
"""The number of bytes read at once."""


def read_text(
    path: Paths,
    *,
    compression: Compression = "infer",
    follow: bool | Literal["lines"] = False,
    poll_every: Duration = "1s",
    max_age: Duration = "7d",
    name: str = "read_text",
) -> TextSource:
    """Read lines of UTF-8 text, without their line ends: a file (also compressed), a folder (all `*.txt`), a glob, or a list of
    these.

    Each file is read by one worker, in order. `path` may have URLs, as in `read_parquet`. The stream has no event time.
    `compression` is as in `read_csv`, and `follow`, `poll_every` and `max_age` are as in `read_parquet`. Raises ConnectorError
    that names file and line for a line that isn't UTF-8, and the file for a compressed one that is truncated or damaged.

    With `follow="lines"` files may also grow: they are read up to their last complete line, and further when they grow. Inode and
    first bytes identify a file, so a log that is renamed and recreated (also if `path` doesn't match the new name, in the same
    folder) is read to its end. A file that is truncated or replaced is read from its beginning. A file that is removed, truncated
    or replaced before the lines found by the last look were read fails the job with a ConnectorError that names it; lines that
    appear and disappear between two looks are not noticed. Files can't be compressed or at a URL. `max_age` has no effect:
    checkpoints contain all existing files.
    """
    return TextSource(path, compression, follow_of(follow, poll_every, max_age, name), name)


class TextSource(LinesSource):
    """A source of text files: each file is a split."""

    has_columns = False
    extensions = tuple(kind + ending for kind in (".txt", ".text", ".log") for ending in ENDINGS)

    def __init__(self, paths: Paths, compression: Compression, follow: Follow | None, name: str) -> None:
        super().__init__(paths, None, compression, follow, name)

    def known_columns(self) -> Columns:
        return Columns({ITEM: pa.string()}, complete=True)

    def _plan(self, files: Sequence[str]) -> list[Split]:
        return whole_files(files)

    def _open(self, split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        given = 0
        for block in whole_lines(split.path, self._compression, self.name):
            rows = pa.record_batch({ITEM: self._lines(block, split.path, given)})
            given += rows.num_rows
            yield rows

    def decode(self, path: str, block: LineBlock) -> pa.RecordBatch:
        return pa.record_batch({ITEM: self._lines(_unix(block.lines.removesuffix(b"\n")), f"{path} before byte {block.end}", 0)})

    def _lines(self, block: bytes, path: str, before: int) -> pa.Array:
        try:
            text = pa.array([block], pa.binary()).cast(pa.string())
        except pa.ArrowInvalid as error:
            lines = block.split(b"\n")
            bad = next(i for i, line in enumerate(lines) if not _is_utf8(line))
            raise ConnectorError(f"operator `{self.name}`: {path}, line {before + bad + 1} is not UTF-8: {lines[bad][:100]!r}") from error
        return pc.split_pattern(text, "\n").flatten()


def whole_lines(path: str, compression: str | None, operator: str) -> Iterator[bytes]:
    """Yield the file in blocks that end with a line, without its line end."""
    rest = b""
    try:
        with open_file(path, compression) as file:
            while block := file.read(BLOCK):
                lines, end, tail = block.rpartition(b"\n")
                if not end:
                    rest += block
                    continue
                yield _unix(rest + lines)
                rest = tail
    except (OSError, pa.ArrowException) as error:  # Arrow has no specific error class for some damage of bz2
        raise ConnectorError(f"operator `{operator}`: {path} can't be read: {error}") from error
    if rest:
        yield _unix(rest)


def _unix(lines: bytes) -> bytes:
    return lines.replace(b"\r\n", b"\n").removesuffix(b"\r")


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
