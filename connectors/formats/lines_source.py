"""The base of sources of text files, which may be compressed, and with `follow="lines"` may grow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ...engine.errors import FlowError
from ...engine.source import SourceReader
from ...engine.time.event_time import EventTime
from ..files.compression import Compression, compression_of
from ..files.paths import Paths
from ..files.remote import is_remote
from ..followed.follow import Follow
from ..followed.growing import LineBlock
from ..followed.lines import LinesReader, share_out_lines
from .file_source import FileSource


class LinesSource(FileSource):
    """A source of text files. A subclass also decodes blocks of lines (see `FilesOfLines`)."""

    has_header = False

    def __init__(self, paths: Paths, event_time: EventTime | None, compression: Compression, follow: Follow | None, name: str) -> None:
        super().__init__(paths, event_time, follow, name)
        if self._grows and any(map(is_remote, self._paths)):
            raise FlowError(
                f'operator `{name}`: follow="lines" is for files of a local or mounted file system: elsewhere a renamed log can\'t be '
                "known again, and what was appended need not appear in order; write complete files and follow=True"
            )
        self._compression = compression_of(compression, name)
        if self._grows and self._compression not in (None, "detect"):
            raise FlowError(f"operator `{name}`: files that grow can't be compressed; follow=True reads files that are complete")

    def reader(self, index: int, parallelism: int) -> SourceReader:
        if self.follow is None or not self.follow.lines:
            return super().reader(index, parallelism)
        return LinesReader(self, self.follow, index=index, parallelism=parallelism, event_time=self._event_time)

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        if not self._grows:
            return super().share_out(positions, parallelism)
        return share_out_lines(positions, parallelism, self.name)

    @property
    def _grows(self) -> bool:
        return self.follow is not None and self.follow.lines

    @abstractmethod
    def decode(self, path: str, block: LineBlock) -> pa.RecordBatch:
        """Decode a block of lines. Raises ConnectorError for lines that don't fit the stream's columns."""
