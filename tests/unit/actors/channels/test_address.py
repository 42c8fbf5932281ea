from __future__ import annotations

import pickle

import msgpack

from evenflow.actors.channels.address import Address

ADDRESS = Address("map[0]", "node-1", "ipc:///run/x.sock", "tcp://127.0.0.1:5555", b"k" * 40)


def test_an_address_is_plain_data():
    assert pickle.loads(pickle.dumps(ADDRESS)) == ADDRESS
    assert Address(*msgpack.unpackb(msgpack.packb(ADDRESS))) == ADDRESS


def test_peers_on_the_same_node_use_ipc_and_others_tcp():
    assert ADDRESS.endpoint("node-1") == ADDRESS.ipc
    assert ADDRESS.endpoint("node-2") == ADDRESS.tcp
