"""The settings of a worker's state backend.

>>> StateSettings("redis://127.0.0.1:6379/0").check()
>>> StateSettings("rocksdb").check()
Traceback (most recent call last):
    ...
ValueError: backend is 'rocksdb': use "memory", "lmdb", or the address of a server, "redis://HOST:PORT/DATABASE"
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

MEMORY = "memory"
LMDB = "lmdb"


@dataclass(frozen=True, slots=True)
class StateSettings:
    """The settings of a state backend. `backend`: memory, lmdb, or a server's address. `folder`: for LMDB's files, None for the
    temporary folder.

    `job`, `attempt`: part of the names of state in a server, with the operator and the worker's index.
    """

    backend: str = MEMORY
    folder: str | None = None
    job: str = ""
    attempt: int = 0

    def check(self) -> None:
        """Raise ValueError for an unknown backend."""
        if self.backend not in (MEMORY, LMDB):
            server_address(self.backend)

    def describe(self) -> str:
        """Return a few words for `explain()`, without a server's password.

        >>> StateSettings("redis://user:secret@127.0.0.1:6379/0").describe()
        'in the server 127.0.0.1:6379'
        """
        if self.backend == MEMORY:
            return "in memory"
        if self.backend == LMDB:
            return f"in LMDB files below {self.folder if self.folder is not None else 'the temporary folder'}"
        return f"in the server {server_address(self.backend).netloc.rpartition('@')[2]}"


def server_address(url: str) -> SplitResult:
    """Parse a server's address. Raises ValueError if it isn't one."""
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    database = parts.path.removeprefix("/")
    if parts.scheme != "redis" or not parts.hostname or (database and not database.isdecimal()) or parts.query or parts.fragment:
        raise ValueError(f'backend is {url!r}: use "memory", "lmdb", or the address of a server, "redis://HOST:PORT/DATABASE"')
    _ = parts.port  # raises ValueError for an invalid port
    return parts
