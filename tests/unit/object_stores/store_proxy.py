"""A proxy in front of an object store that injects faults: the store seems overloaded, cut off, slow, or to lack a feature."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from store_requests import CONDITIONS, Request, without_condition

HOP = {"connection", "transfer-encoding", "content-length", "expect"}
ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>injected</Message></Error>"

Understand = Callable[[str, str, Mapping[str, str], bytes], Request]
"""Says what a request is, of a method, a URL, headers with names in small letters, and a body."""


@dataclass
class Fault:
    """`kind`: overloaded (503), denied (403), cut (no answer, and nothing done), lost (done, and no answer), slow, careless (without
    the condition that an object is only created), or pending or failed (Azure says so of a
    copy). For the next `times` requests that `applies`
    is true of.
    """

    kind: str
    applies: Callable[[Request], bool] = lambda request: True
    times: int = 1 << 30
    met: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.held = threading.Event()
        """Ends what a slow proxy waits for."""

    def meets(self, request: Request) -> bool:
        if len(self.met) >= self.times or not self.applies(request):
            return False
        self.met.append(request)
        return True


class Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, protocol: str, understand: Understand) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.protocol, self.understand, self.upstream, self.fault = protocol, understand, 0, Fault("none", times=0)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address) -> None:
        """Ignore errors: a client that hangs up is not one."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def answer(self) -> None:
        body = self._body()
        fault = self.server.fault
        headers = {name.lower(): value for name, value in self.headers.items()}
        kind = fault.kind if fault.meets(self.server.understand(self.command, self.path, headers, body)) else ""
        if kind == "cut":
            self._hang_up()
        elif kind == "overloaded":
            self._say(503, ERROR.format("SlowDown").encode())
        elif kind == "denied":
            self._say(403, ERROR.format("AccessDenied").encode())
        else:
            if kind == "slow":
                fault.held.wait(30)
            self._forward(body, kind)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            """Skip trailers."""
        return b"".join(chunks)

    def _forward(self, body: bytes, kind: str) -> None:
        drop, url = (HOP | CONDITIONS, without_condition(self.path)) if kind == "careless" else (HOP, self.path)
        upstream = HTTPConnection("127.0.0.1", self.server.upstream, timeout=30)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in drop}
        upstream.request(self.command, url, body, headers)
        answer = upstream.getresponse()
        data = answer.read()
        upstream.close()
        if kind == "lost":
            self._hang_up()
        else:
            given = answer.getheaders()
            if kind in ("pending", "failed"):
                given = [(name, value) for name, value in given if name.lower() != "x-ms-copy-status"] + [("x-ms-copy-status", kind)]
            self._say(answer.status, data, given)

    def _say(self, status: int, data: bytes, headers=(("Content-Type", "application/xml"),)) -> None:
        self.send_response_only(status)
        length = str(len(data))
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


for verb in ("GET", "PUT", "POST", "HEAD", "DELETE"):
    setattr(_Handler, f"do_{verb}", _Handler.answer)
