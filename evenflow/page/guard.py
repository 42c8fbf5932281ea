"""Restricts the page to the user who has its start address, in pages that this server delivered.

The server listens on loopback, where every web page that the user's browser shows can send requests too. So each request must name this
server as its host (a foreign name that resolves to loopback is DNS rebinding), must not come from a page of another site, and must carry
the token. The token is in the start address; it becomes a cookie that scripts can't read and that other sites' requests don't carry.
"""

from __future__ import annotations

import secrets

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""No inline scripts or styles, nothing from other servers, in no frame, and nothing in the browser's cache."""

HOSTS = ("127.0.0.1", "localhost")


ACTIONS = ("/act", "/preview")
"""The paths of requests that change a job, and that preview a change."""

PROOF = "X-Evenflow-Action"
"""The header that proves that a page is ours: other sites' pages can't send it, and don't know its value."""

READ_ONLY = "this page is read-only: `evenflow ui --allow-actions` lets pages change jobs\n"


class Guard:
    """The access control of one server. `token` opens the page; `port` is the server's, once it is known. `action_token`: sent by pages
    with each change of a job; None if pages may not change jobs.
    """

    def __init__(self, *, allow_actions: bool = False) -> None:
        self.token = secrets.token_urlsafe(24)
        self.action_token = secrets.token_urlsafe(24) if allow_actions else None
        self.port = 0

    @property
    def address(self) -> str:
        """The start address, with the token."""
        return f"http://{HOSTS[0]}:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The cookie's name, with the port: all ports of a host share their cookies."""
        return f"evenflow-{self.port}"

    def problem(self, request: web.Request) -> web.Response | None:
        """Return the refusal of a request that may not be answered, None for any other."""
        if request.headers.get("Host") not in [f"{host}:{self.port}" for host in HOSTS]:
            return web.Response(status=403, text="this address is not this server's\n")
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return web.Response(status=403, text="the request comes from a page of another site: open the start address by hand\n")
        acts = request.method == "POST" and request.path in ACTIONS
        if request.method not in ("GET", "HEAD") and not acts:
            return web.Response(status=405, text="this page is read-only\n", headers={"Allow": "GET, HEAD"})
        if self._is_token(request.query.get("token", "")) and request.path == "/":
            return self._enter(request)
        if not self._is_token(request.cookies.get(self.cookie, "")):
            return web.Response(status=401, text="open the address that `evenflow ui` printed: it contains a token\n")
        return self._action_problem(request) if acts else None

    def _action_problem(self, request: web.Request) -> web.Response | None:
        """Return the refusal of a change by a user who may see the page."""
        if self.action_token is None:
            return web.Response(status=403, text=READ_ONLY)
        if request.headers.get("Origin", self._origin(request)) != self._origin(request):
            return web.Response(status=403, text="the request comes from a page of another server\n")
        if not secrets.compare_digest(request.headers.get(PROOF, "").encode(), self.action_token.encode()):
            return web.Response(status=403, text=f"the header {PROOF} is missing or wrong: reload the page\n")
        return None

    def _origin(self, request: web.Request) -> str:
        return f"http://{request.headers.get('Host')}"

    def _is_token(self, word: str) -> bool:
        return secrets.compare_digest(word.encode(), self.token.encode())

    def _enter(self, request: web.Request) -> web.Response:
        """Redirect to the same page without the token in its address."""
        there = request.rel_url.without_query_params("token")
        response = web.Response(status=303, headers={"Location": str(there)})
        response.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")
        return response


def middleware(guard: Guard) -> Middleware:
    """Make the middleware that refuses requests, and adds headers to every response."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = guard.problem(request) or await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=error.text)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return guarded
