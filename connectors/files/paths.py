"""Search for the files of a user's path: a file, a folder, a glob, or a list of these.

>>> import tempfile, pathlib
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> for name in ("b.csv", "a.csv", "_log.csv", ".a.csv", "notes.txt"):
...     (folder / name).touch()
>>> [pathlib.Path(file).name for file in find_files(str(folder), (".csv",), "read_csv")]
['a.csv', 'b.csv']
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...engine.errors import ConnectorError, FlowError
from .remote import RemoteFile, checked_url, explained_listing, folder_or_url, is_remote

Paths = str | Path | Iterable[str | Path]
"""A file, a folder, a glob (`data/*.csv`, `data/**/*.csv`), each also as a URL that fsspec opens, or several of these."""


def path_list(paths: Paths, operator: str) -> tuple[str, ...]:
    """Return the user's paths, absolute because workers have another working folder. Raises FlowError for an empty list or an
    unknown URL.
    """
    several: list[Any] = [paths] if isinstance(paths, (str, Path)) else list(paths) if _is_list(paths) else [None]
    if not all(isinstance(path, (str, Path)) and str(path) for path in several):
        raise FlowError(f'operator `{operator}`: {paths!r:.200}: expected a path or a URL, or a list of them, for example "flights/"')
    named = [folder_or_url(path, f"operator `{operator}`") for path in several]
    checked = [checked_url(path, operator) if is_remote(path) else path for path in named]
    given = tuple(path if is_remote(path) else str(Path(path).absolute()) for path in checked)
    if not given:
        raise FlowError(f"operator `{operator}`: the list of paths is empty")
    return given


def _is_list(paths: Any) -> bool:
    return isinstance(paths, Iterable) and not isinstance(paths, (bytes, Mapping))


def find_files(path: str, extensions: tuple[str, ...], operator: str) -> list[str]:
    """List the files that `path` names; those of a folder (all levels) or a glob are sorted.

    In folders only names that end with one of `extensions` count, and names that begin with `.` or `_` never do. Raises
    ConnectorError for a path that doesn't exist, and for a folder or a glob without a file.
    """
    refuse_missing(path, operator)
    found = files_now(path, extensions)
    if not found and Path(path).is_dir():
        raise ConnectorError(f"operator `{operator}`: folder {path} has no files that end with {' or '.join(extensions)}")
    if not found:
        raise ConnectorError(f"operator `{operator}`: no file matches {path}")
    return found


def remote_files(url: str, extensions: tuple[str, ...], operator: str) -> list[RemoteFile]:
    """List the files that a URL names, sorted, as `files_now` does. Raises ConnectorError if it can't be listed."""
    files = explained_listing(url, operator)
    if [file.url for file in files] == [url]:
        return files
    shown = list[RemoteFile]()
    for file in files:
        names = _below(file.url, url).split("/")
        if any(map(_hidden, names)):
            continue
        if names[-1].endswith(extensions) or glob.has_magic(url):
            shown.append(file)
    return shown


def _below(file: str, url: str) -> str:
    """Return a file's path relative to the folder of a path or URL, or to the part of a glob without wildcards."""
    parts = url.split("/")
    fixed = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return "/".join(file.split("/")[fixed:])


def refuse_missing(path: str, operator: str) -> None:
    """Raise ConnectorError for a path that doesn't exist and isn't a glob."""
    if not glob.has_magic(path) and not Path(path).exists():
        raise ConnectorError(f"operator `{operator}`: {path} does not exist")


def files_now(path: str, extensions: tuple[str, ...]) -> list[str]:
    """List files as `find_files` does, but return none if there are none now."""
    if Path(path).is_file():
        return [path]
    if Path(path).is_dir():
        return sorted(_walk(path, extensions))
    matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 -- Path.glob enters hidden folders
    shown = [match for match in matches if not any(map(_hidden, _below(match, path).split("/")))]
    return [file for match in shown for file in ([match] if Path(match).is_file() else sorted(_walk(match, extensions)))]


def _walk(folder: str, extensions: tuple[str, ...]) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _hidden(name)]
        yield from (os.path.join(parent, name) for name in names if name.endswith(extensions) and not _hidden(name))  # noqa: PTH118 -- quicker


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))
