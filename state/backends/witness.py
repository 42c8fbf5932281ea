"""Detection of writes that a state server has lost, by a counter in a key next to the state.

A server that was flushed, or restored an older copy, keeps answering as if keys had never existed. So every round trip ends with
an increment of a counter, which the server keeps under a key for this worker. If the counter has a wrong value, this and all
earlier replies are invalid. It starts at a random value, so that another job of the same name is detected too.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from .server_client import Command, ServerClient

_CACHES = ("allkeys-", "eviction")
"""Prefixes of the policies by which a server evicts keys that don't expire: Redis' and Valkey's, and Dragonfly's."""


class Witness:
    """A client that runs commands through `client`, with the counter under `name`."""

    def __init__(self, client: ServerClient, name: str) -> None:
        self._client, self._name = client, name
        self._count = secrets.randbits(48)
        self.check_policy()
        self._client.run([("SET", name, self._count)])

    def check_policy(self) -> None:
        """Raise StateBackendError if the server evicts keys when its memory is full."""
        facts = dict(line.split(b":", 1) for line in self._client.run([("INFO", "memory")])[0].splitlines() if b":" in line)
        policy = facts.get(b"maxmemory_policy", b"noeviction").decode(errors="replace")
        if policy.startswith(_CACHES):
            raise self._client.failed(
                f"evicts keys when its memory is full (maxmemory-policy {policy}), and state with them: "
                "set maxmemory-policy noeviction, or use another server for state"
            )

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands and return their replies. Raises StateBackendError like the client, and if the server has lost writes."""
        if not commands:
            return []
        *replies, count = self._client.run([*commands, ("INCR", self._name)])
        self._count += 1
        if count != self._count:
            raise self._client.failed("has lost writes: it was flushed, or restored an older copy, or another job of this name uses it")
        return replies

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
