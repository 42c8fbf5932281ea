"""A client of the Redis protocol (RESP2): commands in, replies out, many in one round trip.

It speaks no more than a state backend needs. A connection that fails stays closed: the job then goes back to its last checkpoint, which is
the only place from which it knows what the server holds.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from ..errors import StateBackendError
from .settings import server_address

CONNECT_TIMEOUT = 5.0
REPLY_TIMEOUT = 30.0
"""Seconds without a byte from the server, after which it counts as gone."""

PORT = 6379
WINDOW = 1 << 20
"""Bytes of commands that are sent before their replies are read: neither side's buffers fill with what the other doesn't read."""

_PIECE = 1 << 16

Command = Sequence[bytes | str | int]


class ServerReplyError(Exception):
    """The server refused a command."""


class RespClient:
    """A connection to `url` (`redis://USER:PASSWORD@HOST:PORT/DATABASE`) for `operator`, which errors name."""

    def __init__(self, url: str, operator: str) -> None:
        parts = server_address(url)
        self.server = f"{parts.hostname}:{parts.port if parts.port is not None else PORT}"
        self._operator = operator
        self._buffer = bytearray()
        self._at = 0
        try:
            self._socket = socket.create_connection((parts.hostname, parts.port if parts.port is not None else PORT), CONNECT_TIMEOUT)
        except OSError as error:
            raise self._error(f"can't be reached: {error}; start it, or correct StateConfig(backend=...)") from error
        self._socket.settimeout(REPLY_TIMEOUT)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        login: list[Command] = []
        if parts.password is not None:
            user = [unquote(parts.username)] if parts.username else []
            login.append(("AUTH", *user, unquote(parts.password)))
        self.run([*login, ("SELECT", parts.path.removeprefix("/") or "0")])

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """The reply of each command: None, an int, bytes or a list of these.

        Raises StateBackendError if one is refused or the server is gone.
        """
        replies: list[Any] = []
        waiting, size, pieces = 0, 0, list[bytes]()
        for command in commands:
            encoded = _encode(command)
            pieces.append(encoded)
            waiting, size = waiting + 1, size + len(encoded)
            if size >= WINDOW:
                replies += self._round_trip(pieces, waiting)
                waiting, size, pieces = 0, 0, []
        if waiting:
            replies += self._round_trip(pieces, waiting)
        return replies

    def close(self) -> None:
        """Let go of the connection."""
        self._socket.close()

    def _round_trip(self, pieces: list[bytes], replies: int) -> list[Any]:
        try:
            self._socket.sendall(b"".join(pieces))
            return [self._reply() for _ in range(replies)]
        except ServerReplyError as error:
            raise self.failed(f"refused a command: {error}") from error
        except OSError as error:
            raise self.failed(f"is gone: {error or type(error).__name__} (it is waited for {REPLY_TIMEOUT:g} s)") from error
        except (ValueError, IndexError) as error:
            raise self.failed(f"doesn't speak the Redis protocol: {error}") from error

    def _reply(self) -> Any:
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return self._bulk(int(rest))
        if kind == b"*":
            return None if rest == b"-1" else [self._reply() for _ in range(int(rest))]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        if kind == b"-":
            raise ServerReplyError(rest.decode(errors="replace"))
        raise ValueError(f"a reply began with {line[:20]!r}")

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n", self._at)) < 0:
            self._receive()
        line = bytes(self._buffer[self._at : end])
        self._at = end + 2
        return line

    def _bulk(self, size: int) -> bytes | None:
        if size < 0:
            return None
        while len(self._buffer) < self._at + size + 2:
            self._receive()
        data = bytes(self._buffer[self._at : self._at + size])
        self._at += size + 2
        return data

    def _receive(self) -> None:
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        piece = self._socket.recv(_PIECE)
        if not piece:
            raise ConnectionResetError("it closed the connection")
        self._buffer += piece

    def failed(self, problem: str) -> StateBackendError:
        """What to raise when the server is no longer to be used, for `problem`."""
        self.close()
        return self._error(problem)

    def _error(self, problem: str) -> StateBackendError:
        return StateBackendError(f"operator `{self._operator}`: the state server {self.server} {problem}")


def _encode(command: Command) -> bytes:
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    return b"".join((b"*%d\r\n" % len(words), *(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)))
