"""Server-sent events: a stream of messages to one tab."""

from __future__ import annotations

from aiohttp import web

from .guard import HEADERS


async def event_stream(request: web.Request) -> web.StreamResponse:
    """The answer to a tab that listens, with its headers sent."""
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
    await response.prepare(request)
    return response


async def send(response: web.StreamResponse, message: str) -> None:
    """One message, a line of JSON. Raises ConnectionResetError if the tab is gone."""
    await response.write(f"data: {message}\n\n".encode())
