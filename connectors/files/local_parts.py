"""Parts in a local folder: they are renamed when they are prepared and when they are committed.

A part is `.part-START-WRITER-N.inprogress` while it is written and `....prepared` once it is durable and some checkpoint may hold
it, both directly in the folder. `.part-START.owner` names the start's job (`claim.py`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ...engine.errors import ConnectorError
from ...state.durable import make_folder, sync_folder
from .claim import Claim, dead_runs, owner_file
from .part_store import Needed, Owner, PartId, PartStore, missing, prepared_names, truncated


class LocalParts(PartStore):
    """The parts in `folder`, which all workers and the driver share."""

    def __init__(self, folder: Path, owner: Owner) -> None:
        self.folder, self.owner = folder, owner
        self.url = str(folder)
        self._claim: Claim | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_claim": None}

    def begin(self) -> None:
        make_folder(self.folder)

    def top(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if not path.name.startswith("."))

    def files(self) -> list[str]:
        found = (Path(parent, name) for parent, _, names in os.walk(self.folder) for name in names)
        return sorted(path.relative_to(self.folder).as_posix() for path in found)

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files, and the folders of partitions that this leaves empty."""
        for path in paths:
            (self.folder / path).unlink(missing_ok=True)
        for folder in sorted({parent for path in paths for parent in Path(path).parents}, reverse=True):
            with contextlib.suppress(FileNotFoundError):
                sync_folder(self.folder / folder)
            if folder.name:
                with contextlib.suppress(OSError):
                    (self.folder / folder).rmdir()

    def create(self, part: PartId) -> BinaryIO:
        return self._in_progress(part).open("xb")

    def finish(self, file: BinaryIO) -> int:
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
        file.close()
        return size

    def drop(self, file: BinaryIO) -> None:
        with contextlib.suppress(OSError):
            file.close()

    def seal(self, parts: Sequence[PartId]) -> list[str]:
        names = [self._in_progress(part).rename(self.folder / f".part-{part}.prepared").name for part in parts]
        if names:
            sync_folder(self.folder)
        return names

    def discard(self, parts: Sequence[PartId]) -> None:
        for part in parts:
            with contextlib.suppress(OSError):
                self._in_progress(part).unlink(missing_ok=True)

    def reveal(self, parts: Sequence[Mapping[str, Any]]) -> None:
        for part in parts:
            self._reveal(part["prepared"], part["final"], part.get("size"))
        for folder in sorted({(self.folder / part["final"]).parent for part in parts} | ({self.folder} if parts else set())):
            sync_folder(folder)

    def sweep(self) -> None:
        for path in self.folder.glob(f".part-{self.owner.start}-*.prepared"):
            path.unlink(missing_ok=True)

    def take_over(self, job: str, needed: Needed) -> None:
        self._claim = self._claim or Claim(self.folder, self.owner.start, job)
        for start in dead_runs(self.folder, job):
            self._sweep_start(start, prepared_names(needed()))

    def release(self) -> None:
        if self._claim is not None:
            self._claim.release()
            self._claim = None
        with contextlib.suppress(OSError):
            self._sweep_start(self.owner.start, keep=None)

    def _in_progress(self, part: PartId) -> Path:
        return self.folder / f".part-{part}.inprogress"

    def _reveal(self, prepared: str, final: str, size: int | None) -> None:
        """Rename a prepared file. Raises ConnectorError if it is missing or truncated. Older checkpoints don't have the size."""
        there = self.folder / prepared if (self.folder / prepared).exists() else self.folder / final
        try:
            found = there.stat().st_size
        except FileNotFoundError as error:
            raise ConnectorError(missing(self.owner.operator, prepared, self.url)) from error
        if size is not None and found != size:
            raise ConnectorError(truncated(self.owner.operator, there, found, size))
        if there.name == prepared:
            if "/" in final:
                make_folder((self.folder / final).parent)
            there.replace(self.folder / final)

    def _sweep_start(self, start: str, keep: Collection[str] | None) -> None:
        """Remove the hidden files of a finished start, except the prepared ones in `keep` (None keeps all of them)."""
        for path in self.folder.glob(f".part-{start}-*.inprogress"):
            path.unlink(missing_ok=True)
        left = False
        for path in self.folder.glob(f".part-{start}-*.prepared"):
            if keep is None or path.name in keep:
                left = True
            else:
                path.unlink(missing_ok=True)
        if not left:
            owner_file(self.folder, start).unlink(missing_ok=True)
