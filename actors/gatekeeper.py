"""The gatekeeper: answers ZeroMQ's question whether the holder of a CURVE key may connect (ZAP, https://rfc.zeromq.org/spec/27).

It is a thread of its own, because a connection must not wait until the worker has processed its batch, and it lives as long as its context:
terminating the context ends it.
"""

from __future__ import annotations

import hmac
import logging
import threading

import zmq
from zmq.utils import z85

DOMAIN = b"evenflow"
"""The authentication domain of every socket that asks the gatekeeper."""

_LOG = logging.getLogger(__name__)


class Gatekeeper:
    """Lets those in who hold the secret half of `client_public` (Z85), on every CURVE server socket of `context`."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], client_public: bytes, name: str) -> None:
        self._key = z85.decode(client_public)
        self._name = name
        self.turned_away = 0
        """Connections refused so far."""
        self._socket = context.socket(zmq.REP)
        self._socket.linger = 0
        self._socket.bind("inproc://zeromq.zap.01")
        self._thread = threading.Thread(target=self._serve, name=f"gatekeeper of {name}", daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the end that follows the end of the context; whether it came."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        try:
            while True:
                self._socket.send_multipart(self._answer(self._socket.recv_multipart()))
        except zmq.ContextTerminated:
            self._socket.close()

    def _answer(self, request: list[bytes]) -> list[bytes]:
        """The reply to: version, request id, domain, address, identity, mechanism, client key (32 bytes)."""
        version, request_id = request[:2]
        _, domain, address, _, mechanism, *credentials = request[1:]
        allowed = domain == DOMAIN and mechanism == b"CURVE" and len(credentials) == 1 and hmac.compare_digest(credentials[0], self._key)
        if allowed:
            return [version, request_id, b"200", b"", b"job", b""]
        self.turned_away += 1
        _LOG.warning("transport `%s` turned away a connection from %s: not a key of this job", self._name, address.decode(errors="replace"))
        return [version, request_id, b"400", b"not a key of this job", b"", b""]
