"""A TCP proxy on loopback between clients and one broker, which can cut all connections.

Clients connect to the address in the broker's responses, so the proxy replaces the broker's address by its own: an address on loopback
has as many bytes, and no length changes. Responses are passed on whole, each after its length of four bytes.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

HOST = "127.0.0.1"
PIECE = 1 << 16
WAIT_SECONDS = 10.0
_LENGTH = struct.Struct(">i")


class Proxy:
    """A context in which the broker at 127.0.0.1:`port` is reachable at `bootstrap`."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        if host != HOST:
            raise ValueError(f"the proxy is for a broker on {HOST}, not {bootstrap}")
        self._broker = int(port)
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kafka-proxy", daemon=True)
        self._open: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._server: asyncio.Server = self._in_loop(asyncio.start_server(self._serve, HOST, 0)).result(WAIT_SECONDS)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._in_loop(self._end()).result(WAIT_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_SECONDS)
        self._loop.close()

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"{HOST}:{self._port}"

    def cut(self) -> int:
        """Reset all connections; returns how many clients had one. They may reconnect at once."""
        count: int = self._in_loop(self._cut()).result(WAIT_SECONDS)
        return count

    def _in_loop(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _cut(self) -> int:
        writers = list(self._open)
        for writer in writers:
            writer.transport.abort()
        return len(writers) // 2

    async def _end(self) -> None:
        self._server.close()
        await self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            responses, requests = await asyncio.open_connection(HOST, self._broker)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, requests}
        self._open |= ends
        try:
            await asyncio.gather(self._to_broker(reader, requests), self._to_client(responses, writer))
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # the connection was cut, or an end closed it: both are closed
        finally:
            self._open -= ends
            for end in ends:
                end.transport.abort()

    async def _to_broker(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError

    async def _to_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found, put = address_of(self._broker), address_of(self._port)
        while True:
            length = await reader.readexactly(_LENGTH.size)
            response = await reader.readexactly(*_LENGTH.unpack(length))
            writer.write(length + response.replace(found, put))
            await writer.drain()


def address_of(port: int) -> bytes:
    r"""Return host and port as Kafka's responses have them: the text, and four bytes.

    >>> address_of(9092)
    b'127.0.0.1\x00\x00#\x84'
    """
    return HOST.encode() + _LENGTH.pack(port)
