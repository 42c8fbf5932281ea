"""Errors that another attempt of a job would meet in the same way, with a remedy for each, in one table.

Invariant: an error that isn't in the table is worth another attempt. An error is judged together with its causes. Causes are lost
on the way to another process, so `judged` notes the verdict on the error before that.

>>> hopeless(ConnectionResetError(104, "Connection reset by peer")) is None
True
>>> hopeless(ModuleNotFoundError("No module named 'pandas'", name="pandas"))
'install the module `pandas` on every node, in the version that the driver has'
>>> hopeless(PermissionError(13, "Permission denied", "/srv/out"))
'give the user that runs Ray access to /srv/out on every node'
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import TypeVar

from ..state.errors import EvenflowError, StateFolderError
from .errors import FlowError, RecordError

E = TypeVar("E", bound=EvenflowError)

_BY_CLASS: tuple[tuple[type[BaseException], Callable[..., str]], ...] = (
    (RecordError, lambda _: "correct the function or the data, or skip such records with on_error=..."),
    (FlowError, lambda _: "correct the program"),
    (ImportError, lambda error: f"install the module `{error.name or error}` on every node, in the version that the driver has"),
)

_BY_NUMBER = {
    errno.EACCES: "give the user that runs Ray access to {} on every node",
    errno.EPERM: "give the user that runs Ray access to {} on every node",
    errno.EROFS: "choose another location than {}, which is on a read-only file system",
    errno.ENOTDIR: "choose another location than {}: a part of this path is a file, not a folder",
    errno.ELOOP: "choose another location than {}, whose links form a loop",
    errno.ENAMETOOLONG: "choose a shorter name than {}",
}
"""Remedies by error number.

An error that a library made up for a remote store has none: the store may grant the request later.
"""


def hopeless(error: BaseException) -> str | None:
    """Return the remedy for an error that another attempt would meet again; None if another attempt may help."""
    for one in _causes(error):
        if isinstance(one, EvenflowError) and one.remedy is not None:
            return one.remedy
        for kind, remedy in _BY_CLASS:
            if isinstance(one, kind):
                return remedy(one)
        if isinstance(one, StateFolderError) and (one.number == errno.ENOENT or one.number in _BY_NUMBER):
            return f"create {one.folder} on every node, writable for the user that runs Ray, or set another folder by StateConfig(dir=...)"
        if isinstance(one, OSError) and one.errno in _BY_NUMBER:
            return _BY_NUMBER[one.errno].format(one.filename if one.filename is not None else "what it names")
    return None


def judged(error: E) -> E:
    """Note the verdict on the error, for another process, and return it."""
    error.remedy = hopeless(error)
    return error


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen = set[int]()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        yield one
        seen.add(id(one))
        one = one.__cause__
