"""Access to remote files that fsspec lists and opens, by URL (`s3://bucket/in`, `ftp://host/in`).

Every listing is fresh: a listing cached by fsspec would hide new files.

>>> import fsspec
>>> with fsspec.open("memory://remote/a.csv", "w") as file:
...     _ = file.write("n")
>>> [(file.url, file.size) for file in listed("memory://remote")]
[('memory://remote/a.csv', 1)]
"""

from __future__ import annotations

import glob
import io
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ...engine.errors import ConnectorError, FlowError
from ...engine.secrets import has_secret, revealed_url
from ...state.object_stores import file_system, is_azure
from ...state.store_errors import translated, unusable

_LOCAL = ("file://", "local://")

_CUT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/([^/].*)")
"""A URL that `Path` has shortened to one slash."""

_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "modify", "created")
"""Names of the entry for the last change of a file in different file systems, the most exact first."""


class RemoteFile(NamedTuple):
    """A file at a URL. `changed`: the last change in nanoseconds since 1970, in whole seconds because file systems round
    differently.
    """

    url: str
    changed: int
    size: int


def is_remote(path: str) -> bool:
    """Return True if the path is a URL."""
    return "://" in path


def folder_or_url(path: str | PathLike[str], what: str) -> str:
    """Return a user's path, absolute, or the URL. Raises FlowError naming `what` for anything else, and for a URL that has lost a
    slash.

    >>> folder_or_url("s3://bucket/jobs", "dir"), folder_or_url("/data/jobs", "dir")
    ('s3://bucket/jobs', '/data/jobs')
    >>> folder_or_url(Path("s3://bucket/jobs"), "dir")
    Traceback (most recent call last):
        ...
    evenflow.engine.errors.FlowError: dir: 's3:/bucket/jobs' is a URL without its second slash; give it as a string: 's3://bucket/jobs'
    """
    if not isinstance(path, (str, PathLike)) or not str(path):
        raise FlowError(f"{what}: {path!r} is neither a path nor a URL")
    text = str(path)
    if (cut := _CUT.match(text)) is not None:
        raise FlowError(f"{what}: {text!r} is a URL without its second slash; give it as a string: {f'{cut[1]}://{cut[2]}'!r}")
    if not is_remote(text) and has_secret(text):
        raise FlowError(
            f"{what}: a secret can be a part of a URL, not all of it or of a path: write the scheme, such as s3://, outside of it"
        )
    return text if is_remote(text) else str(Path(text).absolute())


def local_folder(path: str | PathLike[str], operator: str) -> Path:
    """Return the local folder that a path or a `file://` URL names. Raises FlowError for any other URL.

    >>> local_folder("file:///data/out", "write_delta")
    PosixPath('/data/out')
    """
    text = folder_or_url(path, f"operator `{operator}`")
    for local in _LOCAL:
        if text.startswith(local):
            return Path(text.removeprefix(local)).absolute()
    if is_remote(text):
        raise FlowError(
            f"operator `{operator}`: {text} can't be used: it takes a folder that all workers and the driver share, as a path or as "
            "file:///path. Object stores are supported by write_parquet, write_csv and write_json, by sources of files, and for "
            "checkpoints and savepoints; or write into a mounted folder"
        )
    return Path(text)


def folder_or_store(path: str | PathLike[str], operator: str) -> str:
    """Return the folder or the object store that a sink's path names. Raises FlowError for a URL that can't be a folder.

    >>> folder_or_store("file:///data/out", "write_csv"), folder_or_store("memory://out/", "write_csv")
    ('/data/out', 'memory://out')
    """
    text = folder_or_url(path, f"operator `{operator}`")
    if not is_remote(text) or text.startswith(_LOCAL):
        return str(local_folder(path, operator))
    if glob.has_magic(text) or "#" in text:
        raise FlowError(f"operator `{operator}`: {text}: expected the URL of a folder, without * ? [ ] #")
    return checked_url(text, operator)


def checked_url(url: str, operator: str) -> str:
    """Return the URL, or the path of a local one. Raises FlowError for an unknown protocol, or one whose package is missing."""
    for local in _LOCAL:
        if url.startswith(local):
            return url.removeprefix(local)
    protocol = url.partition("://")[0]
    import fsspec

    try:
        fsspec.get_filesystem_class(protocol)
    except (ValueError, ImportError) as error:
        raise FlowError(f"operator `{operator}`: {protocol}:// can't be used: {unusable(url, error)}") from error
    return url if url.endswith("://") else url.rstrip("/")


def listed(url: str) -> list[RemoteFile]:
    """List the files that a URL names, sorted: a file, those below a folder, or those that match a glob or are below matching
    folders.

    Returns an empty list if there is nothing. Raises OSError.
    """
    with reached(url) as (files, path):
        if glob.has_magic(path):
            matches = files.glob(path, detail=True)
            folders = [name for name, info in matches.items() if info["type"] == "directory" and not _hidden(name)]
            found = {name: info for name, info in matches.items() if info["type"] == "file" and not _hidden(name)}
        else:
            folders, found = [path], {}
        for folder in folders:
            below = files.find(folder, detail=True)
            found |= below if isinstance(below, dict) else {name: files.info(name) for name in below}  # adlfs: a file itself is a list
        named = _naming(files, url, path)
        return sorted(RemoteFile(named(name), _changed(files, info), int(info["size"])) for name, info in found.items())


def look_at_remote(url: str) -> RemoteFile | None:
    """Return the file's current state, or None if it doesn't exist. Raises OSError."""
    with reached(url) as (files, path):
        try:
            info = files.info(path)
        except FileNotFoundError:
            return None
        return RemoteFile(url, _changed(files, info), int(info["size"]))


def open_remote(url: str) -> BinaryIO:
    """Open a file for reading. Raises OSError, also while it is read."""
    with reached(url, fresh=False) as (files, path):  # callers have examined the file before they open it
        return io.BufferedReader(_Reading(files.open(path, "rb"), url))


def explained_listing(url: str, operator: str) -> list[RemoteFile]:
    """List files as `listed` does. Raises ConnectorError."""
    try:
        return listed(url)
    except OSError as error:
        raise ConnectorError(
            f"operator `{operator}`: {url} can't be listed: {error}; check the address, the rights, and that the server runs"
        ) from error


class _Reading(io.RawIOBase):
    """A file of fsspec whose errors are all OSErrors, whichever library raises them."""

    def __init__(self, file: Any, url: str) -> None:
        self._file, self._url = file, url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with translated(self._url, "read"):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        with translated(self._url, "seek"):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


@contextmanager
def reached(url: str, what: str = "file system", *, fresh: bool = True) -> Iterator[tuple[Any, str]]:
    """Yield the file system of a URL, and the path in it. Errors are StoreErrors that name the URL and `what`, except
    FileNotFoundError and FileExistsError.

    `fresh`: discard the file system's cached listings first.
    """
    with translated(url, what):
        files, path = file_system(revealed_url(url))
        try:
            if fresh:
                files.invalidate_cache()
            yield files, path
        except FileNotFoundError:
            raise
        except Exception:
            files.clear_instance_cache()  # the next one reconnects
            raise


def _naming(files: Any, url: str, path: str) -> Callable[[str], str]:
    """Return the function that turns a path of the file system into a URL like this one."""
    below = path.rstrip("/")
    if url.endswith(below):
        return (url.removesuffix(below)).__add__
    protocol, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    if is_azure(files) and "@" in host:  # abfs://container@account.dfs.core.windows.net/path
        return lambda name: f"{protocol}://{host}{name.removeprefix(host.partition('@')[0])}"
    return str(files.unstrip_protocol(below)).removesuffix(below).__add__


def _changed(files: Any, info: Mapping[str, Any]) -> int:
    """Return the time of a file's last change, see `RemoteFile`. Raises OSError if the file system doesn't report it."""
    found = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    if found is None:
        try:
            found = files.modified(info["name"])
        except NotImplementedError as error:
            raise OSError(f"the file system of {info['name']} doesn't report when a file was changed") from error
    if isinstance(found, str):
        digits = found.partition(".")[0]
        found = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC) if digits.isdigit() else datetime.fromisoformat(found)
    if isinstance(found, datetime):
        found = (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    return int(found) * 1_000_000_000


def _hidden(name: str) -> bool:
    return posixpath.basename(name).startswith((".", "_"))
