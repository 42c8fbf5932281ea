"""Parts of HTTP that several pages share: event streams, and the parsing of requests."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from .guard import HEADERS


async def event_stream(request: web.Request) -> web.StreamResponse:
    """Open a stream of server-sent events to one tab."""
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
    await response.prepare(request)
    return response


async def send_event(response: web.StreamResponse, message: str) -> None:
    """Send one message, a line of JSON. Raises ConnectionResetError if the tab is closed."""
    await response.write(f"data: {message}\n\n".encode())


async def json_body(request: web.Request) -> dict[str, Any]:
    """Read the JSON object that a page sent. Raises HTTPBadRequest for anything else."""
    try:
        body = await request.json()
    except ValueError as error:
        raise web.HTTPBadRequest(text="the request is no JSON\n") from error
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="the request is no JSON object\n")
    return body


def number(request: web.Request, name: str) -> float | None:
    """Read a number of the query. Raises HTTPBadRequest for another text."""
    text = request.query.get(name)
    try:
        return None if text is None else float(text)
    except ValueError as error:
        raise web.HTTPBadRequest(text=f"{name} is no number\n") from error
