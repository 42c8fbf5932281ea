"""An OpenTelemetry collector for tests: takes OTLP over HTTP on loopback, and decodes it with OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Receiver:
    """A collector. `spans`: by name; `services`: the senders; `authorized`: the Authorization headers of requests."""

    url: str = ""
    spans: dict[str, list[Span]] = field(default_factory=dict)
    services: set[str] = field(default_factory=set)
    authorized: set[str | None] = field(default_factory=set)

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for of_resource in request.resource_spans:
            self.services.add(_values(of_resource.resource.attributes)["service.name"])
            for of_scope in of_resource.scope_spans:
                for span in of_scope.spans:
                    self.spans.setdefault(span.name, []).append(Span(span))


class Span:
    """A span of a trace, as received: times in seconds since the epoch."""

    def __init__(self, message: Any) -> None:
        self.begin, self.end = message.start_time_unix_nano / 1e9, message.end_time_unix_nano / 1e9
        self.attributes = _values(message.attributes)
        self.events = [(event.name, event.time_unix_nano / 1e9, _values(event.attributes)) for event in message.events]
        self.problem = message.status.message if message.status.code == 2 else None


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Yield a receiver that listens on a free port."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            receiver.authorized.add(self.headers.get("Authorization"))
            receiver.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
