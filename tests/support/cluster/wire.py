"""The traffic over the bridge between hosts (`hosts.py`): the bytes of every TCP connection, in their order."""

from __future__ import annotations

import socket
import threading
from collections import defaultdict
from collections.abc import Collection

OUTGOING = 4
"""The direction of a packet that leaves a bridge by a port. Each packet passes once so, and once more where it enters."""


class Wire:
    """A recording of traffic from now on. `bridge`: an AF_PACKET socket created in the bridge's namespace."""

    def __init__(self, bridge: int) -> None:
        self._socket = socket.socket(fileno=bridge)
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self._streams: defaultdict[tuple[str, int, str, int], bytearray] = defaultdict(bytearray)
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def with_text(self, text: str) -> list[tuple[str, int, str, int]]:
        """Return the connections, by source and destination with their ports, in which `text` passed in plain form."""
        with self._lock:
            return [stream for stream, payload in self._streams.items() if text.encode() in payload]

    def carried(self, ends: Collection[tuple[str, int]]) -> int:
        """Return the bytes that went to or from these addresses and ports."""
        with self._lock:
            return sum(len(payload) for stream, payload in self._streams.items() if touches(stream, ends))

    def _watch(self) -> None:
        while True:
            packet, about = self._socket.recvfrom(1 << 17)
            if about[2] != OUTGOING or packet[12:14] != b"\x08\x00" or packet[23] != socket.IPPROTO_TCP:
                continue
            tcp = 14 + 4 * (packet[14] & 15)
            payload = packet[tcp + 4 * (packet[tcp + 12] >> 4) : 14 + int.from_bytes(packet[16:18])]
            source, target = int.from_bytes(packet[tcp : tcp + 2]), int.from_bytes(packet[tcp + 2 : tcp + 4])
            with self._lock:
                self._streams[socket.inet_ntoa(packet[26:30]), source, socket.inet_ntoa(packet[30:34]), target] += payload


def touches(stream: tuple[str, int, str, int], ends: Collection[tuple[str, int]]) -> bool:
    """Return True if a connection has one of these ends."""
    return stream[:2] in ends or stream[2:] in ends
