"""The gatekeeper, which admits or rejects connecting peers by their CURVE key or password (ZAP, https://rfc.zeromq.org/spec/27).

It runs in its own thread, because a connection must not wait until the worker has processed its batch. Terminating its ZeroMQ
context ends it.
"""

from __future__ import annotations

import hmac
import logging
import threading

import zmq
from zmq.utils import z85

from .security import Security

DOMAIN = b"evenflow"
"""The authentication domain of every socket that asks the gatekeeper."""

USER = b"job"
"""The user to whom the password belongs."""

_LOG = logging.getLogger(__name__)


class Gatekeeper:
    """A thread that admits peers with the client's secret key or the password of `security`, on every server socket of `context`."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], security: Security, name: str) -> None:
        self._keys = {b"CURVE": [z85.decode(security.client_public)], b"PLAIN": [USER, security.password]}
        self._name = name
        self.rejected = 0
        """Connections refused so far."""
        self._socket = context.socket(zmq.REP)
        self._socket.linger = 0
        self._socket.bind("inproc://zeromq.zap.01")
        self._thread = threading.Thread(target=self._serve, name=f"gatekeeper of {name}", daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the thread to end after its context; return True if it did."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        try:
            while True:
                self._socket.send_multipart(self._answer(self._socket.recv_multipart()))
        except zmq.ContextTerminated:
            self._socket.close()

    def _answer(self, request: list[bytes]) -> list[bytes]:
        """Return the reply to: version, request id, domain, address, identity, mechanism, then a client key or a user and a
        password.
        """
        version, request_id = request[:2]
        _, domain, address, _, mechanism, *credentials = request[1:]
        expected = self._keys.get(mechanism)
        if domain == DOMAIN and expected is not None and _equal(credentials, expected):
            return [version, request_id, b"200", b"", b"job", b""]
        self.rejected += 1
        if self.rejected.bit_count() == 1:  # the first, the second, the fourth: a flood of them logs a few lines
            _LOG.warning(
                "transport `%s` rejected a connection from %s, %d so far: not a key of this job",
                self._name, "this node" if mechanism == b"PLAIN" else address.decode(errors="replace"), self.rejected,
            )  # fmt: skip
        return [version, request_id, b"400", b"not a key of this job", b"", b""]


def _equal(given: list[bytes], expected: list[bytes]) -> bool:
    return len(given) == len(expected) and all(map(hmac.compare_digest, given, expected))
