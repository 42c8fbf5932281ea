"""The place of a file sink's parts: a local folder, or a folder of an object store.

A part is hidden while it is written and while its checkpoint isn't complete. `reveal` gives it its final name, and may be repeated.
Invariant: what `files` lists as visible is whole, and belongs to a complete checkpoint.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

Needed = Callable[[], Sequence[Any] | None]
"""Returns the committables of checkpoints from which a job can still begin, None if they are not known."""


class PartId(NamedTuple):
    """The name of a part while it is hidden: the start of the program that writes it, its writer, and its number there."""

    start: str
    writer: str
    number: int

    def __str__(self) -> str:
        return f"{self.start}-{self.writer}-{self.number}"


class Owner(NamedTuple):
    """The start of a program that writes parts: its run, which several starts may continue, its own id, and the operator.

    `fenced`: the job has a folder for checkpoints, so at most one of its starts is in charge.
    """

    run: str
    start: str
    operator: str
    fenced: bool


class PartStore(ABC):
    """The parts of one sink. A committable of a part has its `prepared` name, its `final` path, and its `size` in bytes.

    `owner`: see there. Paths are relative to the store, with `/`. Methods raise OSError, and ConnectorError where they say so.
    """

    url: str
    """The folder, for error messages."""

    owner: Owner

    @abstractmethod
    def begin(self) -> None:
        """Create the folder, or check that parts can be written, committed and removed."""

    @abstractmethod
    def top(self) -> list[str]:
        """List the names of files and folders directly in the store, sorted, without those of hidden parts."""

    @abstractmethod
    def files(self) -> list[str]:
        """List the paths of all files at all levels, sorted, also of hidden ones."""

    @abstractmethod
    def remove(self, paths: Sequence[str]) -> None:
        """Remove files durably; missing ones count as removed."""

    @abstractmethod
    def create(self, part: PartId) -> BinaryIO:
        """Open a new hidden part for writing."""

    @abstractmethod
    def finish(self, file: BinaryIO) -> int:
        """Close the file of a whole part durably, and return its size in bytes."""

    @abstractmethod
    def drop(self, file: BinaryIO) -> None:
        """Close the file of a part that will not be finished. Never raises."""

    @abstractmethod
    def seal(self, parts: Sequence[PartId]) -> list[str]:
        """Make finished parts last until their checkpoint is decided. Returns their prepared names."""

    @abstractmethod
    def discard(self, parts: Sequence[PartId]) -> None:
        """Remove hidden parts that were not sealed. Never raises."""

    @abstractmethod
    def reveal(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """Give prepared parts their final names. Raises ConnectorError for one that is missing or truncated."""

    @abstractmethod
    def sweep(self) -> None:
        """Remove the sealed parts of this start, which no checkpoint needs."""

    @abstractmethod
    def take_over(self, job: str, needed: Needed) -> None:
        """Claim the store for this start of `job`, and remove hidden parts of its dead starts that are not in `needed`."""

    @abstractmethod
    def release(self) -> None:
        """End the claim of this start, and remove hidden parts that were certainly not sealed. Never raises."""


def missing(operator: str, prepared: str, store: str) -> str:
    """Return the error message for a prepared part that isn't there."""
    return (
        f"operator `{operator}`: {prepared} is missing from {store}, so its rows can't be committed; "
        "don't remove hidden files of a job that may be resumed"
    )


def truncated(operator: str, path: str | os.PathLike[str], found: int, size: int) -> str:
    """Return the error message for a part that has another size than was written."""
    return f"operator `{operator}`: {path} has {found:,} bytes, and {size:,} were written: its rows are lost unless you restore the file"


def prepared_names(committables: Sequence[Any] | None) -> set[str] | None:
    """Return the prepared names among committables of any sinks; None if they are not known."""
    return None if committables is None else {part["prepared"] for part in committables if isinstance(part, dict) and "prepared" in part}
