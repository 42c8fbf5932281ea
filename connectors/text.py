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

from ..engine.batch import ITEM
from ..engine.columns import Columns
from ..engine.errors import ConnectorError
from ..engine.time.duration import Duration
from .compression import ENDINGS, Compression, open_file
from .file_source import whole_files
from .followed.follow import Follow, follow_of
from .followed.growing import Block
from .lines_source import LinesSource
from .paths import Paths
from .splits import Split

BLOCK = 1 << 20
"""Bytes that are read at once."""


def read_text(
    path: Paths,
    *,
    compression: Compression = "infer",
    follow: bool | Literal["lines"] = False,
    poll_every: Duration = "1s",
    max_age: Duration = "7d",
    name: str = "read_text",
) -> TextSource:
    """Lines of UTF-8 text, without their line ends: a file (also compressed), a folder (all `*.txt`), a glob, or a list of these.

    A file is read by one worker, in order. `path` may have URLs, as in `read_parquet`. The stream has no event time. Raises
    ConnectorError naming file and line for a line that
    isn't UTF-8, and naming the file for a compressed one that is cut short or damaged. `compression` is as in `read_csv`,
    and `follow`, `poll_every` and `max_age` as in `read_parquet`.

    With `follow="lines"` files may also grow: they are read up to their last complete line, and on from there when they have more. A file
    is known by its inode and its first bytes, so a log that is renamed and begun anew (also under a name that `path` doesn't match, in the
    same folder) is read to its end. One that is emptied, or replaced, is read from its beginning. A file that is gone, emptied or replaced
    before the lines that the last look has found were read ends the job with a ConnectorError that names it; lines that come and go
    between two looks are not noticed. Files can't be compressed or at a URL. `max_age` has no
    meaning: checkpoints know all files that there are.
    """
    return TextSource(path, compression, follow_of(follow, poll_every, max_age, name), name)


class TextSource(LinesSource):
    """A file is a split."""

    extensions = tuple(kind + ending for kind in (".txt", ".text", ".log") for ending in ENDINGS)

    def __init__(self, paths: Paths, compression: Compression, follow: Follow | None, name: str) -> None:
        super().__init__(paths, None, compression, follow, name)

    def known_columns(self) -> Columns:
        return Columns({ITEM: pa.string()}, complete=True)

    def _plan(self, files: Sequence[str]) -> list[Split]:
        return whole_files(files)

    def _open(self, split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        given = 0
        for block in _whole_lines(split.path, self._compression, self.name):
            rows = pa.record_batch({ITEM: self._lines(block, split.path, given)})
            given += rows.num_rows
            yield rows

    def decode(self, path: str, block: Block) -> pa.RecordBatch:
        return pa.record_batch({ITEM: self._lines(_unix(block.lines.removesuffix(b"\n")), f"{path} before byte {block.end}", 0)})

    def _lines(self, block: bytes, path: str, before: int) -> pa.Array:
        try:
            text = pa.array([block], pa.binary()).cast(pa.string())
        except pa.ArrowInvalid as error:
            lines = block.split(b"\n")
            bad = next(i for i, line in enumerate(lines) if not _is_utf8(line))
            raise ConnectorError(f"operator `{self.name}`: {path}, line {before + bad + 1} is not UTF-8: {lines[bad][:100]!r}") from error
        return pc.split_pattern(text, "\n").flatten()


def _whole_lines(path: str, compression: str | None, operator: str) -> Iterator[bytes]:
    """The file in blocks that end where a line ends, without that last line end."""
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
    except (OSError, pa.ArrowException) as error:  # Arrow gives some damage of bz2 no error class of its own
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
