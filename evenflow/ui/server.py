"""The web server of the page: static files, and the figures as server-sent events."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from aiohttp import web

from ..engine.errors import ClusterError
from .feed import Feed
from .guard import HEADERS, HOSTS, Guard, middleware
from .hub import Hub

STATIC = Path(__file__).with_name("static")


def application(hub: Hub, guard: Guard) -> web.Application:
    """The page of what the hub knows."""

    async def index(_request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html")

    async def events(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        listener = hub.listen(request.query.get("job"))
        try:
            while True:
                await response.write(f"data: {await hub.next(listener)}\n\n".encode())
        except ConnectionResetError:
            return response
        finally:
            hub.leave(listener)

    app = web.Application(middlewares=[middleware(guard)])
    app.add_routes([web.get("/", index), web.get("/events", events), web.static("/static", STATIC)])
    return app


@asynccontextmanager
async def serving(hub: Hub, port: int) -> AsyncIterator[Guard]:
    """Serve on loopback, on any free port if `port` is 0. Raises ClusterError if the port is taken."""
    guard = Guard()
    runner = web.AppRunner(application(hub, guard), access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
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


async def serve(job: str | None, port: int, announce: Callable[[str], None], *, with_input: bool) -> None:
    """Follow `job`, or all jobs, and serve the page until this is cancelled, or standard input has ended if `with_input`.

    `announce` gets the start address. Raises ClusterError if the port is taken.
    """
    hub = Hub(job)
    async with serving(hub, port) as guard:
        announce(guard.address)
        follow = asyncio.ensure_future(Feed(hub.hear, job).run())
        try:
            if with_input:
                await asyncio.wait([follow, asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))], return_when=asyncio.FIRST_COMPLETED)
            else:
                await follow
        finally:
            follow.cancel()
            with suppress(asyncio.CancelledError):
                await follow
