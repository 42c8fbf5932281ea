"""A connection to a server that speaks the Redis protocol: sends commands and returns replies, many in one round trip.

Invariant: a failed connection stays closed. The job then restores its last checkpoint, since only that tells it the server's
content. So the client library's pools, retries and reconnections are not used, but one connection directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from valkey.connection import Connection
from valkey.exceptions import AuthenticationError, InvalidResponse, ResponseError, ValkeyError

from ..errors import StateBackendError
from .settings import server_address

CONNECT_TIMEOUT = 5.0
REPLY_TIMEOUT = 30.0
"""Seconds without a byte from the server after which it counts as lost."""

PORT = 6379
WINDOW = 1 << 20
"""The bytes of commands sent before their replies are read, so that neither side's buffers fill with unread data."""

Command = Sequence[bytes | str | int]


class ServerClient:
    """A connection to `url` (`redis://USER:PASSWORD@HOST:PORT/DATABASE`) for `operator`, which errors name."""

    def __init__(self, url: str, operator: str) -> None:
        parts = server_address(url)
        port = parts.port if parts.port is not None else PORT
        self.server = f"{parts.hostname}:{port}"
        self._operator = operator
        self._open = True
        self._connection: Any = Connection(  # type: ignore[no-untyped-call]
            host=parts.hostname,
            port=port,
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password is not None else None,
            socket_connect_timeout=CONNECT_TIMEOUT,
            socket_timeout=REPLY_TIMEOUT,
            lib_name=None,
            lib_version=None,
        )
        try:
            self._connection.connect()  # type: ignore[no-untyped-call]
        except (AuthenticationError, ResponseError) as error:
            raise self.failed(f"refused the login: {error}; correct the password in StateConfig(backend=...)") from error
        except (ValkeyError, OSError) as error:
            raise self.failed(f"can't be reached: {error}; start it, or correct StateConfig(backend=...)") from error
        self.run([("SELECT", parts.path.removeprefix("/") or "0")])

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands and return the reply of each: None, an int, bytes or a list of these.

        Raises StateBackendError if the server rejects one or is lost.
        """
        replies: list[Any] = []
        waiting, size, pieces = 0, 0, list[bytes]()
        for command in commands:
            packed = self._connection.pack_command(*command)
            pieces += packed
            waiting, size = waiting + 1, size + sum(map(len, packed))
            if size >= WINDOW:
                replies += self._round_trip(pieces, waiting)
                waiting, size, pieces = 0, 0, []
        if waiting:
            replies += self._round_trip(pieces, waiting)
        return replies

    def close(self) -> None:
        """Close the connection."""
        self._open = False
        self._connection.disconnect()

    def _round_trip(self, pieces: list[bytes], replies: int) -> list[Any]:
        if not self._open:
            raise self.failed("is gone: the connection to it was closed")
        try:
            self._connection.send_packed_command([b"".join(pieces)])
            return [self._connection.read_response() for _ in range(replies)]
        except (AuthenticationError, ResponseError) as error:
            raise self.failed(f"refused a command: {error}") from error
        except InvalidResponse as error:
            raise self.failed(f"doesn't speak the Redis protocol: {error}") from error
        except (ValkeyError, OSError) as error:
            raise self.failed(f"is gone: {error or type(error).__name__} (it is waited for {REPLY_TIMEOUT:g} s)") from error

    def failed(self, problem: str) -> StateBackendError:
        """Close the connection and return the error for `problem`."""
        self.close()
        return StateBackendError(f"operator `{self._operator}`: the state server {self.server} {problem}")
