"""Parts in an object store: staged objects, which the store itself copies to their final names when their checkpoint completes.

A part is `_staging/RUN-OPERATOR/START-WRITER-N.staged` until then. A commit copies each staged object that has no final one yet,
and then removes the staged ones, so it may be repeated after a crash at any point. `_staging/RUN-OPERATOR/owner` names the job.
An object store has no locks: starts of a job are told apart by its folder for checkpoints, where one is in charge at a time.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import quote

from ...engine.errors import ConnectorError
from ...state.object_stores import fresh_listing, remove_files
from .copies import copy_object, is_copied
from .part_store import Needed, Owner, PartId, PartStore, missing, prepared_names, truncated
from .remote import reached
from .upload import Upload

STAGING = "_staging"
REQUESTS = 16
"""Requests of one commit at a time."""

BLOCK = 8 << 20
"""Bytes that an open part holds in memory. A larger part is uploaded in pieces of this size; S3 allows 10,000 of them."""

T = TypeVar("T")
R = TypeVar("R")


class RemoteParts(PartStore):
    """The parts below `url`. File systems whose server can't copy an object are refused by `begin`."""

    def __init__(self, url: str, owner: Owner) -> None:
        self.url, self.owner = url, owner

    @property
    def _stage(self) -> str:
        return f"{STAGING}/{self.owner.run}-{quote(self.owner.operator, safe='')}"

    def begin(self) -> None:
        """Write, copy and remove a small object, as a commit does."""
        probe = f"{STAGING}/{self.owner.start}.probe"
        with reached(self.url, probe) as (files, root):
            files.pipe_file(f"{root}/{probe}", b"evenflow")
            copy_object(files, f"{root}/{probe}", f"{root}/{probe}.copy")
            for path in (probe, f"{probe}.copy"):
                files.rm_file(f"{root}/{path}")

    def top(self) -> list[str]:
        with reached(self.url, "list") as (files, root):
            try:
                found = [entry["name"].rstrip("/") for entry in fresh_listing(files, root)]
            except FileNotFoundError:
                return []
        names = sorted(posixpath.basename(name) for name in found if name != root)
        return [name for name in names if name != STAGING and not name.startswith(".")]

    def files(self) -> list[str]:
        return sorted(self._sizes(""))

    def remove(self, paths: Sequence[str]) -> None:
        with reached(self.url, "remove") as (files, root):
            for first in range(0, len(paths), 1000):
                some = [f"{root}/{path}" for path in paths[first : first + 1000]]
                try:
                    remove_files(files, some)
                except FileNotFoundError:
                    for path in some:
                        with contextlib.suppress(FileNotFoundError):
                            files.rm_file(path)

    def create(self, part: PartId) -> BinaryIO:
        path = self._staged(part)
        with reached(self.url, path, fresh=False) as (files, root):
            return cast("BinaryIO", Upload(files.open(f"{root}/{path}", "wb", block_size=BLOCK), f"{self.url}/{path}"))

    def finish(self, file: BinaryIO) -> int:
        return cast("Upload", file).finish()

    def drop(self, file: BinaryIO) -> None:
        cast("Upload", file).drop()

    def seal(self, parts: Sequence[PartId]) -> list[str]:
        return [self._staged(part) for part in parts]

    def discard(self, parts: Sequence[PartId]) -> None:
        if parts:
            with contextlib.suppress(OSError):
                self.remove([self._staged(part) for part in parts])

    def reveal(self, parts: Sequence[Mapping[str, Any]]) -> None:
        if not parts:
            return
        there = self._finals([part["final"] for part in parts])
        for part in [part for part in parts if part["final"] in there]:
            if not self._is_copied(part["final"]):
                del there[part["final"]]
            elif there[part["final"]] != part["size"]:
                self._check_committed(part)
        staged = [part for part in parts if part["final"] not in there]
        _at_once(self._check_staged, staged)
        _at_once(self._copy, staged)
        with contextlib.suppress(OSError):  # the next start of the job removes them
            self.remove([part["prepared"] for part in parts])

    def sweep(self) -> None:
        self.remove([path for path in self._sizes(self._stage) if _start_of(path) == self.owner.start])

    def take_over(self, job: str, needed: Needed) -> None:
        """Claim the store, and remove what dead starts of the job have staged for this operator.

        Without a folder for checkpoints, another start of the same job may be alive, and is left alone.
        """
        with reached(self.url, f"{self._stage}/owner") as (files, root):
            files.pipe_file(f"{root}/{self._stage}/owner", job.encode())
        if not self.owner.fenced:
            return
        dead = [stage for stage in self._stages(job) if stage != self._stage]
        paths = [path for stage in dead for path in self._sizes(stage)]
        paths += [path for path in self._sizes(self._stage) if _start_of(path) not in ("owner", self.owner.start)]
        if not paths:
            return
        keep = prepared_names(needed())
        if keep is None:
            return
        kept = {posixpath.dirname(path) for path in paths if path in keep}
        owners = {f"{stage}/owner" for stage in kept}
        self.remove([path for path in paths if path not in keep and path not in owners])

    def release(self) -> None:
        """Remove the claim if no parts are staged; without a folder for checkpoints, which nothing resumes, the parts as well."""
        with contextlib.suppress(OSError):
            paths = [*self._sizes(self._stage)]
            if not self.owner.fenced or all(_start_of(path) == "owner" for path in paths):
                self.remove(paths)

    def _stages(self, job: str) -> list[str]:
        """List the staging folders of this operator that name `job` as their owner, of all runs."""
        with reached(self.url, STAGING) as (files, root):
            try:
                found = [posixpath.basename(entry["name"].rstrip("/")) for entry in fresh_listing(files, f"{root}/{STAGING}")]
            except FileNotFoundError:
                return []
            owned = []
            for name in found:
                if name.partition("-")[2] == quote(self.owner.operator, safe=""):
                    with contextlib.suppress(FileNotFoundError):
                        if files.cat_file(f"{root}/{STAGING}/{name}/owner") == job.encode():
                            owned.append(f"{STAGING}/{name}")
            return owned

    def _staged(self, part: PartId) -> str:
        return f"{self._stage}/{part}.staged"

    def _finals(self, paths: Sequence[str]) -> dict[str, int]:
        """Return those of the final paths of one checkpoint that exist, with their sizes: by one listing for each folder of them."""
        prefix = "-".join(posixpath.basename(paths[0]).split("-")[:2])
        folders = sorted({posixpath.dirname(path) for path in paths})
        found: dict[str, int] = {}
        for sizes in _at_once(lambda folder: self._sizes(folder, prefix), folders):
            found |= sizes
        return {path: found[path] for path in paths if path in found}

    def _sizes(self, folder: str, prefix: str = "") -> dict[str, int]:
        """Return the sizes of the objects below a folder; `prefix`: only of those in the folder whose names begin with it."""
        with reached(self.url, folder or "list") as (files, root):
            options = {"prefix": prefix} if prefix else {}
            found = files.find(posixpath.join(root, folder).rstrip("/"), detail=True, **options)
            return {name.removeprefix(f"{root}/"): int(info["size"]) for name, info in found.items() if info["type"] == "file"}

    def _size(self, path: str) -> int | None:
        with reached(self.url, path) as (files, root):
            try:
                return int(files.info(f"{root}/{path}")["size"])
            except FileNotFoundError:
                return None

    def _check(self, path: str, found: int, size: int) -> None:
        if found != size:
            raise ConnectorError(truncated(self.owner.operator, f"{self.url}/{path}", found, size))

    def _check_staged(self, part: Mapping[str, Any]) -> None:
        found = self._size(part["prepared"])
        if found is None:
            self._check_committed(part)
        else:
            self._check(part["prepared"], found, part["size"])

    def _copy(self, part: Mapping[str, Any]) -> None:
        with reached(self.url, part["final"], fresh=False) as (files, root):
            try:
                copy_object(files, f"{root}/{part['prepared']}", f"{root}/{part['final']}")
            except FileNotFoundError:
                self._check_committed(part)

    def _is_copied(self, path: str) -> bool:
        with reached(self.url, path) as (files, root):
            return is_copied(files, f"{root}/{path}")

    def _check_committed(self, part: Mapping[str, Any]) -> None:
        """Return if the part has its final name: a process that was replaced may just have committed it. Else it is missing."""
        found = self._size(part["final"])
        if found is None:
            raise ConnectorError(missing(self.owner.operator, part["prepared"], self.url))
        self._check(part["final"], found, part["size"])


def _start_of(path: str) -> str:
    """Return the start that staged an object, or `owner`."""
    return posixpath.basename(path).partition("-")[0]


def _at_once(call: Callable[[T], R], arguments: Iterable[T]) -> list[R]:
    """Call a function of requests for each argument, several at a time. Raises the first error once all have returned."""
    with ThreadPoolExecutor(REQUESTS) as pool:
        return [done.result() for done in [pool.submit(call, each) for each in arguments]]
