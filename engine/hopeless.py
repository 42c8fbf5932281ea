"""Errors that another attempt of a job would meet in the same way: one table says which they are, and what to do about each.

Invariant: what isn't in the table is worth another attempt. An error is judged together with its causes. Causes are lost on the way
to another process, so `judged` notes the verdict on the error before it leaves.

>>> hopeless(ConnectionResetError(104, "Connection reset by peer")) is None
True
>>> hopeless(ModuleNotFoundError("No module named 'pandas'", name="pandas"))
'install the module `pandas` on every node, in the version that the driver has'
>>> hopeless(PermissionError(13, "Permission denied", "/srv/out"))
'let the user that Ray runs as use /srv/out on every node'
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import TypeVar

from ..state.errors import EvenflowError, StateFolderError
from .errors import FlowError, RecordError

E = TypeVar("E", bound=EvenflowError)

_BY_CLASS: tuple[tuple[type[BaseException], Callable[..., str]], ...] = (
    (RecordError, lambda _: "correct the function or the data, or let on_error=... leave such records out"),
    (FlowError, lambda _: "correct the program"),
    (ImportError, lambda error: f"install the module `{error.name or error}` on every node, in the version that the driver has"),
)

_BY_NUMBER = {
    errno.EACCES: "let the user that Ray runs as use {} on every node",
    errno.EPERM: "let the user that Ray runs as use {} on every node",
    errno.EROFS: "choose another place than {}, which is on a file system that can't be written",
    errno.ENOTDIR: "choose another place than {}, part of which is a file and not a folder",
    errno.ELOOP: "choose another place than {}, whose links lead in a circle",
    errno.ENAMETOOLONG: "choose a shorter name than {}",
}
"""Remedies by error number. An error that a library made up for a remote store has none: the store may grant the request later."""


def hopeless(error: BaseException) -> str | None:
    """Return what to do about an error that another attempt would meet again; None if another attempt may help."""
    for one in _causes(error):
        if isinstance(one, EvenflowError) and one.remedy is not None:
            return one.remedy
        for kind, remedy in _BY_CLASS:
            if isinstance(one, kind):
                return remedy(one)
        if isinstance(one, StateFolderError) and (one.number == errno.ENOENT or one.number in _BY_NUMBER):
            return f"make {one.folder} on every node, for the user that Ray runs as, or name another folder in StateConfig(dir=...)"
        if isinstance(one, OSError) and one.errno in _BY_NUMBER:
            return _BY_NUMBER[one.errno].format(one.filename if one.filename is not None else "what it names")
    return None


def judged(error: E) -> E:
    """The error with the verdict noted, for another process."""
    error.remedy = hopeless(error)
    return error


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen = set[int]()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        yield one
        seen.add(id(one))
        one = one.__cause__
