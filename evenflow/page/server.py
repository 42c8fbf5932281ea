"""The web server of the page: static files, and the messages of live jobs or of a recording."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from aiohttp import web

from ..engine.errors import ClusterError
from ..recording.file import Recording
from .feed import Feed
from .guard import HOSTS, Guard, middleware
from .hub import Hub
from .live import LARGEST, Live
from .replay import Replay

STATIC = Path(__file__).with_name("static")

Announce = Callable[[str], None]


class Pages(Protocol):
    """The content of pages: running jobs, or a recording."""

    def routes(self) -> list[web.AbstractRouteDef]: ...


def application(pages: Pages, guard: Guard) -> web.Application:
    """Make the application of the page, with its files."""

    async def index(_request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html")

    app = web.Application(middlewares=[middleware(guard)], client_max_size=LARGEST)
    app.add_routes([web.get("/", index), *pages.routes(), web.static("/static", STATIC)])
    return app


@asynccontextmanager
async def serving(pages: Pages, port: int, guard: Guard | None = None) -> AsyncIterator[Guard]:
    """Serve on loopback, on any free port if `port` is 0. Raises ClusterError if the port is taken."""
    guard = Guard() if guard is None else guard
    runner = web.AppRunner(application(pages, guard), access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, HOSTS[0], port).start()
        except OSError as error:
            raise ClusterError(f"the page can't be served on port {port}: {error.strerror or error}") from error
        guard.port = runner.addresses[0][1]
        yield guard
    finally:
        await runner.cleanup()


async def serve(job: str | None, port: int, announce: Announce, *, with_input: bool, allow_actions: bool) -> None:
    """Follow `job`, or all jobs, and serve the page until this is cancelled, or standard input has ended if `with_input`.

    `announce` gets the start address. With `allow_actions` the page can change jobs. Raises ClusterError if the port is taken.
    """
    guard = Guard(allow_actions=allow_actions)
    hub = Hub(job, actions=guard.action_token)
    feed = Feed(hub.receive, job)
    async with serving(Live(hub, feed.act if allow_actions else None, feed.act), port, guard):
        announce(guard.address)
        follow = asyncio.ensure_future(feed.run())
        try:
            if with_input:
                await asyncio.wait([follow, asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))], return_when=asyncio.FIRST_COMPLETED)
            else:
                await follow
        finally:
            follow.cancel()
            with suppress(asyncio.CancelledError):
                await follow


async def serve_replay(path: Path, port: int, announce: Announce) -> None:
    """Serve the page of a recording until this is cancelled.

    Raises ConnectorError or SnapshotError if it can't be read, ClusterError if the port is taken.
    """
    recording = Recording(path)
    pages = Replay(recording)
    pages.message(recording.ended)  # an unreadable recording is an error of the command, not of a page
    async with serving(pages, port) as guard:
        announce(guard.address)
        await asyncio.Event().wait()
