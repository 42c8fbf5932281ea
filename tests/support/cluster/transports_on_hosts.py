"""A program, not a test: a channel between two hosts; prints observations for `test_wire.py` as JSON. It begins in the hall."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path

import pyarrow as pa
from hosts import Host
from patience import patience
from wire import Wire, touches

from evenflow.actors.channels.address import Address
from evenflow.actors.channels.credit import ChannelLimits
from evenflow.actors.channels.security import Security
from evenflow.actors.channels.transport import Transport
from evenflow.engine.batch import Batch

ROWS, PATIENCE = 2_000, patience(60)
SECRET, PLAIN = "what a record says", "the same without encryption"


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain"
        time.sleep(0.01)
    return value


def put(path, value):
    path.with_suffix(".new").write_text(json.dumps(value))
    path.with_suffix(".new").rename(path)


def take(path):
    until(path.exists)
    return json.loads(path.read_text())


def receive(folder, security):
    with Transport("down", 0, security, ChannelLimits(), host="10.77.0.2") as transport:
        transport.accept(7, "up")
        put(folder / "address", [*transport.address[:-1], transport.address.public_key.decode()])
        seen = []
        while len(seen) < ROWS:
            for channel, batch in transport.poll(1):
                seen += batch.rows["n"].to_pylist()
                transport.consumed(channel, batch)
        put(folder / "received", seen)
        take(folder / "over")


def send(folder, security):
    *texts, key = take(folder / "address")
    address = Address(*texts, key.encode())
    with Transport("up", 0, security, ChannelLimits(), host="10.77.0.1") as transport:
        transport.connect(7, address)
        for n in range(ROWS):
            transport.send(7, Batch(pa.record_batch({"n": [n], "text": [SECRET]})))
        transport.flush(PATIENCE)
        take(folder / "received")
        host, _, port = address.tcp.removeprefix("tcp://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as stranger:
            stranger.sendall(PLAIN.encode())
        take(folder / "over")


def main(folder):
    private = folder / "private"
    private.mkdir()
    security = Security.generate("wire")
    keys = (security.server_public, security.server_secret, security.client_public, security.client_secret, security.password)
    put(folder / "security", [security.job, *(key.decode() for key in keys)])
    wire = Wire(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)).detach())
    environment = os.environ | {"TMPDIR": str(private)}
    for number, role in ((1, "send"), (2, "receive")):
        Host(number, private, [sys.executable, __file__, str(folder), role], environment).wire()
    received = take(folder / "received")
    ends = {("10.77.0.2", int(take(folder / "address")[3].rpartition(":")[2]))}
    until(lambda: wire.with_text(PLAIN))
    seen = {
        "in_order": received == list(range(ROWS)),
        "carried": wire.carried(ends),
        "secret": len(wire.with_text(SECRET)),
        "plain": sum(touches(stream, ends) for stream in wire.with_text(PLAIN)),
    }
    put(folder / "over", seen)
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        job, *keys = take(Path(sys.argv[1]) / "security")
        {"send": send, "receive": receive}[sys.argv[2]](Path(sys.argv[1]), Security(job, *(key.encode() for key in keys)))
