"""Differences between object stores that fsspec's interface doesn't hide.

>>> import fsspec
>>> has_folders(fsspec.filesystem("memory"))
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_OBJECT_STORES = frozenset({"s3", "gs", "abfs"})


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it. Raises ImportError and ValueError as fsspec does, and errors of its library.

    That of an object store keeps no listings: several processes write, and by an old listing an object that another one has just
    written would be missing.
    """
    import fsspec

    known = _protocols(fsspec.get_filesystem_class(fsspec.utils.get_protocol(url)))
    return fsspec.core.url_to_fs(url, **({} if _OBJECT_STORES.isdisjoint(known) else {"use_listings_cache": False}))  # type: ignore[no-any-return]


def has_folders(files: Any) -> bool:
    """Return False for stores without folders: a request that makes one does nothing, and costs as much as any other."""
    return _OBJECT_STORES.isdisjoint(_protocols(files))


def is_azure(files: Any) -> bool:
    """Return True for Azure Blob Storage."""
    return "abfs" in _protocols(files)


def remove_files(files: Any, paths: Sequence[str]) -> None:
    """Remove several files. Raises FileNotFoundError if none exists, in some file systems, and errors of the file system."""
    if is_azure(files):
        files.rm(list(paths), expand_path=False)  # it would ask for each of them first
    else:
        files.rm(list(paths))


def fresh_listing(files: Any, folder: str) -> list[dict[str, Any]]:
    """List a folder, never from a cache. Raises FileNotFoundError, and errors of the file system."""
    files.invalidate_cache(folder)  # adlfs has no `refresh`
    return list(files.ls(folder, detail=True, refresh=True))


def _protocols(files: Any) -> tuple[str, ...]:
    return (files.protocol,) if isinstance(files.protocol, str) else tuple(files.protocol)
