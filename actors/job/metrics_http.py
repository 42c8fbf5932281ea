"""The HTTP server of a job's metrics: on any address, with a bearer token and TLS if wanted.

Invariant: a client that connects and sends nothing, or speaks no TLS, occupies its own thread for `PATIENCE` seconds and delays
no other client.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app
from prometheus_client.registry import Collector

from ...scheduler.configs.run import MetricsConfig

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

PATIENCE = 10.0
"""Seconds for which a connection may send or take nothing."""

_LOG = logging.getLogger(__name__)


class MetricsHttp(ThreadingMixIn, WSGIServer):
    """A server on `config.host` and `port`, in threads of its own. Raises OSError if it can't listen there, or a file can't be
    read.
    """

    daemon_threads = True

    def __init__(self, config: MetricsConfig, port: int, registry: Collector) -> None:
        self._certificate = None if config.certificate is None else Certificate(config.certificate, config.key)
        try:
            found = socket.getaddrinfo(config.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            self.address_family = found[0]
            super().__init__(found[4][:2], _Handler)  # type: ignore[arg-type]
        except OSError as error:
            raise OSError(error.errno, error.strerror, f"{config.host}:{port}") from error
        app: App = make_wsgi_app(registry)
        self.set_app(app if config.token is None else guarded(app, config.token))
        self._thread = threading.Thread(target=self.serve_forever, name="evenflow-metrics", daemon=True)
        self._thread.start()

    def server_bind(self) -> None:
        """Bind the socket without the look-up of the host's name that the base class makes, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its own thread."""
        request.settimeout(PATIENCE)
        if self._certificate is None:
            super().finish_request(request, client_address)
            return
        with self._certificate.context().wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Note a connection that has failed, which is the client's problem."""
        _LOG.debug("a connection from %s to the metrics has failed", client_address, exc_info=True)

    def close(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()
        self._thread.join(timeout=5)


class _Handler(WSGIRequestHandler):
    """A handler of requests that prints nothing."""

    timeout = PATIENCE

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name of the base class
        """Log nothing."""


class Certificate:
    """The certificate of a server and its key, read again when their files change. Raises OSError if they can't be read."""

    def __init__(self, certificate: str, key: str | None) -> None:
        self._certificate, self._key = certificate, key
        self._seen = self._stamps()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """Return the context for the next connection. While new files can't be used, the previous certificate stays."""
        try:
            if (seen := self._stamps()) != self._seen:
                self._context, self._seen = self._load(), seen
        except OSError as error:
            _LOG.warning("the metrics keep their previous certificate: %s", error)
        return self._context

    def _stamps(self) -> list[tuple[int, int]]:
        found = [Path(path).stat() for path in (self._certificate, self._key) if path is not None]
        return [(stat.st_mtime_ns, stat.st_ino) for stat in found]

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self._certificate, self._key, password=_refuse)
        except (OSError, ValueError) as error:
            key = "" if self._key is None else f" with key {self._key}"
            raise OSError(f"certificate {self._certificate}{key} can't be used: {error}") from error
        return context


def _refuse() -> str:
    """Raise ValueError, where OpenSSL would ask the terminal for a password."""
    raise ValueError("the key is encrypted; give a key without a password")


def guarded(app: App, token: str) -> App:
    """Return an app that answers 401 without this bearer token."""
    expected = token.encode("ascii")

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        scheme, _, given = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("latin-1", "replace"), expected):
            return app(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", 'Bearer realm="metrics"'), ("Content-Type", "text/plain")])
        return [b"the metrics need a bearer token: MetricsConfig(token=...)\n"]

    return answer


def reachable(host: str, node: str) -> str:
    """Return an address at which others find a server on `host` of the node with the address `node`.

    >>> reachable("0.0.0.0", "10.0.0.7"), reachable("::", "fd00::7"), reachable("127.0.0.1", "10.0.0.7")
    ('10.0.0.7', '[fd00::7]', '127.0.0.1')
    """
    parsed = _parsed(host)
    address = node if parsed is not None and parsed.is_unspecified else host
    return f"[{address}]" if ":" in address else address


def is_loopback(host: str) -> bool:
    """Return True if only processes of the same machine reach this address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.7", "node-3")]
    [True, True, True, False, False, False]
    """
    address = _parsed(host)
    return host == "localhost" if address is None else address.is_loopback


def _parsed(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
