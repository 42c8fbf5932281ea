"""The sockets of a transport: it listens, connects to peers, and admits peers.

Every transport has its own ZeroMQ context, so that closing leaves no thread, no file and no folder.
"""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import zmq

from ...engine.errors import ClusterError
from ...engine.protocol.ids import Attempt
from .address import Address
from .frames import MAX_FRAME_BYTES
from .gatekeeper import DOMAIN, USER, Gatekeeper
from .security import Security
from .socket_folder import SocketFolder

RELEASE_LINGER = 1.0
"""Seconds; the receiver is already listening, so this takes no time."""

_BIND_ATTEMPTS = 5
_GATEKEEPER_END = 5.0

HANDSHAKE_SECONDS = 10.0
"""The deadline for a new connection to authenticate; until then it occupies a file descriptor of this process."""


class Sockets:
    """A bound ROUTER, a DEALER per downstream worker, and the poller over them."""

    def __init__(self, name: str, attempt: Attempt, security: Security, host: str, *, prefer_tcp: bool) -> None:
        self._name, self._routing_id, self._security, self._prefer_tcp = name, routing_id(name, attempt), security, prefer_tcp
        self._context = zmq.Context()
        self._folder = SocketFolder(security.job)
        self._dealers: dict[str, zmq.Socket[bytes]] = {}  # by the peer's path, which stays when it listens elsewhere too
        self._names: dict[zmq.Socket[bytes], bytes] = {}
        self._path: Path | None = None
        self._gatekeeper = Gatekeeper(self._context, security, name)
        self.router = self._make(zmq.ROUTER)
        try:
            self.address = self._bind(host)
        except BaseException:
            self.router.close()
            self._context.term()
            self._sweep()
            raise
        self.poller = zmq.Poller()
        self.poller.register(self.router, zmq.POLLIN)
        self._dealer_poller = zmq.Poller()

    def dealer(self, address: Address) -> zmq.Socket[bytes]:
        """Return the socket to the transport at `address`, connecting it on first use."""
        if address.ipc not in self._dealers:
            endpoint = self._endpoint(address)
            socket = self._make(zmq.DEALER)
            socket.routing_id = self._routing_id
            if endpoint == address.tcp:
                socket.curve_serverkey = address.public_key
                socket.curve_publickey, socket.curve_secretkey = self._security.client_public, self._security.client_secret
            else:
                socket.plain_username, socket.plain_password = USER, self._security.password
            socket.connect(endpoint)
            self._dealers[address.ipc] = socket
            self._names[socket] = address.name.encode()
            self.poller.register(socket, zmq.POLLIN)
            self._dealer_poller.register(socket, zmq.POLLIN)
        return self._dealers[address.ipc]

    def listen(self, host: str) -> None:
        """Listen on `host` too, which `address` then includes. Raises ClusterError if that fails."""
        self.address = self.address._replace(tcp=self._bind_tcp(host))

    def release(self, dealer: zmq.Socket[bytes]) -> None:
        """Close a socket from `dealer`; its messages have `RELEASE_LINGER` seconds to arrive."""
        self._dealers = {path: socket for path, socket in self._dealers.items() if socket is not dealer}
        del self._names[dealer]
        self.poller.unregister(dealer)
        self._dealer_poller.unregister(dealer)
        dealer.close(linger=round(RELEASE_LINGER * 1000))

    @property
    def rejected(self) -> int:
        """The number of connections rejected so far, because the peer doesn't belong to the job."""
        return self._gatekeeper.rejected

    @property
    def connected(self) -> int:
        """The number of transports to which this one has a socket."""
        return len(self._dealers)

    def peer(self, dealer: zmq.Socket[bytes]) -> bytes:
        """Return the name of the transport that `dealer` is connected to."""
        return self._names[dealer]

    def poll(self, timeout: float) -> list[tuple[Any, int]]:
        """Return the readable sockets, after at most `timeout` seconds."""
        return self.poller.poll(math.ceil(timeout * 1000))

    def poll_dealers(self, timeout: float) -> list[Any]:
        """Return the readable DEALERs, after at most `timeout` seconds."""
        return [socket for socket, _ in self._dealer_poller.poll(math.ceil(timeout * 1000))]

    def close(self, linger: float) -> None:
        """Close all sockets; messages to connected peers get at most `linger` seconds."""
        if self._context.closed:
            return
        self.router.close()
        for socket in self._dealers.values():
            socket.close(linger=round(linger * 1000))
        self._context.term()
        self._sweep()
        if not self._gatekeeper.join(_GATEKEEPER_END):
            raise ClusterError(f"transport `{self._name}`: its gatekeeper thread did not end within {_GATEKEEPER_END} s after its context")

    def _endpoint(self, address: Address) -> str:
        endpoint = address.endpoint(self.address.node)
        # The peer is listening by now, so a missing file was removed. ZeroMQ would try for ever.
        gone = endpoint == address.ipc and not Path(endpoint.removeprefix("ipc://")).is_socket()
        return address.tcp if self._prefer_tcp or gone else endpoint

    def _make(self, kind: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        # Credit bounds the messages in flight. ZeroMQ's own limit would block a send, or drop a message to a slow peer.
        socket.sndhwm = socket.rcvhwm = 0
        socket.linger = 0
        socket.maxmsgsize = MAX_FRAME_BYTES
        socket.handshake_ivl = round(HANDSHAKE_SECONDS * 1000)
        return socket

    def _bind(self, host: str) -> Address:
        self.router.router_handover = True  # a sender that reconnects is the same one
        self.router.zap_domain = DOMAIN
        self.router.zap_enforce_domain = True
        # The authentication applies to later binds: for ipc, whose folder keeps others out, a password is enough; TCP is encrypted.
        self.router.plain_server = True
        self._path, node = self._bind_ipc()
        self.router.curve_server = True
        self.router.curve_secretkey = self._security.server_secret
        return Address(self._name, node, f"ipc://{self._path}", self._bind_tcp(host), self._security.server_public)

    def _bind_tcp(self, host: str) -> str:
        try:
            self.router.bind(f"tcp://{host}:*")
        except zmq.ZMQError as error:
            raise ClusterError(f"transport `{self._name}` can't listen on {host}: {error.strerror}") from error
        return self.router.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")

    def _bind_ipc(self) -> tuple[Path, str]:
        for attempt in range(_BIND_ATTEMPTS):
            self._folder.open()
            path = self._folder.new_socket()
            try:
                self.router.bind(f"ipc://{path}")
                return path, self._folder.node()
            except (zmq.ZMQError, FileNotFoundError) as error:
                # Between creation and use, the folder may be removed by the last worker that used it before.
                if attempt == _BIND_ATTEMPTS - 1:
                    raise ClusterError(f"transport `{self._name}` can't listen on {path}: {error}") from error
        raise AssertionError

    def _sweep(self) -> None:
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
        self._folder.close()


def routing_id(name: str, attempt: Attempt) -> bytes:
    """Return the identity of transport `name` of `attempt` for a ROUTER. Raises ValueError if that takes more than 255 bytes."""
    identity = f"{name}#{attempt}".encode()
    if len(identity) > 255 or identity[0] == 0:
        raise ValueError(f"a transport can't be named {name!r}: its name must be shorter than 240 bytes and not start with a zero byte")
    return identity
