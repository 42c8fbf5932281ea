"""Transports of a job, and strangers that connect to them."""

from __future__ import annotations

import pytest
import zmq
from transports import LIMITS

from evenflow.actors.channels.gatekeeper import USER
from evenflow.actors.channels.security import Security
from evenflow.actors.channels.socket_folder import SocketFolder
from evenflow.actors.channels.transport import Transport

REFUSALS = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_DISCONNECTED


@pytest.fixture
def security():
    return Security.generate()


@pytest.fixture
def make(security):
    """Create transports of one job and close them at the end; then nothing of the job may remain."""
    made = []

    def make_transport(name, *, attempt=0, limits=LIMITS, tcp=False, security=security):
        made.append(Transport(name, attempt, security, limits, prefer_tcp=tcp))
        return made[-1]

    yield make_transport
    for transport in made:
        transport.close(linger=0)
    assert not SocketFolder(security.job).path.exists()


@pytest.fixture
def pair(make):
    """Provide a transport that sends on channel 7, and its receiver."""
    up, down = make("up"), make("down")
    down.accept(7, "up")
    up.connect(7, down.address)
    return up, down


@pytest.fixture
def stranger():
    """Create bare sockets connected to an address, with any routing id, keys or password, and messages."""
    context = zmq.Context()
    sockets = []

    def connect(endpoint, routing_id=b"stranger", keys=None, password=None):
        socket = context.socket(zmq.DEALER)
        socket.linger = 0
        socket.routing_id = routing_id
        if password is not None:
            socket.plain_username, socket.plain_password = USER, password
        if keys is not None:
            socket.curve_serverkey, (socket.curve_publickey, socket.curve_secretkey) = keys
        socket.get_monitor_socket(REFUSALS)
        socket.connect(endpoint)
        sockets.append(socket)
        return socket

    yield connect
    context.destroy(linger=0)
