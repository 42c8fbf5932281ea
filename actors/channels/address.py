"""The address of a worker's transport: plain data that travels over Ray or msgpack.

>>> here = Address("map[0]", "node-1", "ipc:///run/x.sock", "tcp://127.0.0.1:5555", b"k" * 40)
>>> here.endpoint("node-1"), here.endpoint("node-2")
('ipc:///run/x.sock', 'tcp://127.0.0.1:5555')
>>> import msgpack
>>> Address(*msgpack.unpackb(msgpack.packb(here))) == here
True
"""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """The endpoints of the transport `name`. `ipc` is for peers that see the same socket folder, that is, have the same `node`."""

    name: str
    node: str
    ipc: str
    tcp: str
    public_key: bytes

    def endpoint(self, node: str) -> str:
        """Return the endpoint for a peer on `node`."""
        return self.ipc if node == self.node else self.tcp
