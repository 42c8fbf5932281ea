"""A server of the page in this process, and requests to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from patience import patience

from evenflow.page.guard import PROOF, Guard
from evenflow.page.hub import Hub
from evenflow.page.live import Live
from evenflow.page.server import Pages, serving

PATIENCE = patience(30)


class Browser:
    """A browser, with the cookie that the start address sets, unless it is a stranger."""

    def __init__(self, session: aiohttp.ClientSession, guard: Guard) -> None:
        self.session, self.guard = session, guard
        self.answers: list[aiohttp.ClientResponse] = []

    async def ask(
        self, path: str, method: str = "GET", *, stranger: bool = False, body: Any = None, **headers: str
    ) -> aiohttp.ClientResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if not stranger:
            named.setdefault("Cookie", f"{self.guard.cookie}={self.guard.token}")
        url = f"http://127.0.0.1:{self.guard.port}{path}"
        self.answers.append(await self.session.request(method, url, headers=named, allow_redirects=False, json=body))
        return self.answers[-1]

    async def act(self, path: str, body: Any, **headers: str) -> aiohttp.ClientResponse:
        """Send an action as the page does."""
        return await self.ask(path, "POST", body=body, **{PROOF: self.guard.action_token or "", **headers})

    async def events(self, path: str = "/events") -> aiohttp.StreamReader:
        return (await self.ask(path)).content


async def message(events: aiohttp.StreamReader) -> dict[str, Any]:
    """Return the next message."""
    line = await events.readline()
    assert line.startswith(b"data: ")
    assert await events.readline() == b"\n"
    told: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
    return told


def with_server(shown: Hub | Pages, test: Callable[[Browser], Awaitable[None]], guard: Guard | None = None) -> None:
    """Run a test against a server of a hub's jobs, or of other pages."""
    pages = Live(shown) if isinstance(shown, Hub) else shown

    async def run() -> None:
        async with (
            asyncio.timeout(PATIENCE),
            serving(pages, 0, guard) as served,
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        ):
            browser = Browser(session, served)
            try:
                await test(browser)
            finally:
                for answer in browser.answers:
                    answer.close()

    asyncio.run(run())
