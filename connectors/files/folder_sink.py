"""The base of sinks whose files are in a local folder, next to a log that names them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .file_sink import FileSink
from .local_parts import LocalParts
from .part_store import PartStore
from .remote import local_folder


class FolderSink(FileSink):
    """A sink of files that refuses object stores."""

    def store_at(self, path: str | Path) -> PartStore:
        return LocalParts(local_folder(path, self.name), self.owner)

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return Path(self.parts.url)

    def check_layout(self, present: Sequence[str]) -> None:
        """Do nothing: readers find the files by their log, not by their folders."""
