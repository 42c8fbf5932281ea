"""A server for tests that speaks as much of Kafka's protocol as a client hears that is refused: with or without TLS, on loopback.

It answers which requests it knows, refuses every SASL login if it wants one, and tells of each topic the error that it was made with.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

API_VERSIONS, METADATA, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 3, 17, 36

KNOWN = {API_VERSIONS: 0, METADATA: 1, SASL_HANDSHAKE: 1, SASL_AUTHENTICATE: 0}
"""The newest version of each request that it knows."""

UNSUPPORTED_VERSION, TOPIC_AUTHORIZATION_FAILED, SASL_AUTHENTICATION_FAILED = 35, 29, 58


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


class _Connection(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        connection = self.request
        with contextlib.suppress(OSError):  # a handshake that fails, too
            if self.server.tls is not None:
                connection = self.server.tls.wrap_socket(connection, server_side=True)
            with connection:
                self.converse(connection)

    def converse(self, connection: socket.socket) -> None:
        while size := self.exactly(connection, 4):
            request = self.exactly(connection, *struct.unpack(">i", size))
            key, version, number = struct.unpack(">hhi", request[:8])
            if key not in KNOWN:
                return
            client = struct.unpack(">h", request[8:10])[0]
            body = struct.pack(">i", number) + self.answer(key, version, request[10 + max(0, client) :])
            connection.sendall(struct.pack(">i", len(body)) + body)

    def exactly(self, connection: socket.socket, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = connection.recv(count - len(data))
            if not more:
                return b""
            data += more
        return data

    def answer(self, key: int, version: int, body: bytes) -> bytes:
        if key == API_VERSIONS:
            problem = 0 if version == 0 else UNSUPPORTED_VERSION
            return struct.pack(">hi", problem, len(KNOWN)) + b"".join(struct.pack(">hhh", api, 0, newest) for api, newest in KNOWN.items())
        if key == SASL_HANDSHAKE:
            return struct.pack(">hi", 0, 1) + text("PLAIN")
        if key == SASL_AUTHENTICATE:
            return struct.pack(">h", SASL_AUTHENTICATION_FAILED) + text("unknown user") + struct.pack(">i", 0)
        host, port = self.server.server_address[:2]
        brokers = struct.pack(">ii", 1, 1) + text(str(host)) + struct.pack(">ih", int(port), -1)
        topics = self.topics(body)
        told = b"".join(struct.pack(">h", self.server.topic_error) + text(name) + struct.pack(">?i", False, 0) for name in topics)
        return brokers + struct.pack(">ii", 1, len(topics)) + told

    def topics(self, body: bytes) -> list[str]:
        count, place, names = struct.unpack(">i", body[:4])[0], 4, list[str]()
        for _ in range(count):
            size = struct.unpack(">h", body[place : place + 2])[0]
            names.append(body[place + 2 : place + 2 + size].decode())
            place += 2 + size
        return names


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext | None, topic_error: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.tls, self.topic_error = tls, topic_error


@contextmanager
def refusing_broker(tls: ssl.SSLContext | None = None, topic_error: int = TOPIC_AUTHORIZATION_FAILED) -> Iterator[str]:
    """Run the server within the block, and yield its address."""
    with _Server(tls, topic_error) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def certificate(folder: Path, names: str) -> tuple[Path, Path]:
    """Create a self-signed certificate for these names (`IP:127.0.0.1,DNS:localhost`), and its key."""
    certified, key = folder / "broker.pem", folder / "broker.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=broker", "-addext", f"subjectAltName={names}"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certified), "-days", "2"], check=True, capture_output=True)
    return certified, key


def server_tls(certified: Path, key: Path, *, clients: Path | None = None) -> ssl.SSLContext:
    """Return the server's TLS settings. `clients`: the certificate authority of clients, if they must have certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certified, key)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    return context
