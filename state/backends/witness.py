"""A key beside the state in a server that tells whether the server still has all that was written to it.

A server that is flushed, or falls back to a copy that is behind, goes on answering, as if keys had never been there. So every round trip
ends with a count of round trips, which the server keeps under a key of the worker's: if it isn't what it must be, nothing that was read
in this round trip or before counts. It begins anywhere, so another job of the same name is found out too.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from .server_client import Command, ServerClient

_CACHES = ("allkeys-", "eviction")
"""How policies begin by which a server forgets keys that don't expire: Redis' and Valkey's, and Dragonfly's."""


class Witness:
    """Runs commands as `client` does, with the count under `name`."""

    def __init__(self, client: ServerClient, name: str) -> None:
        self._client, self._name = client, name
        self._count = secrets.randbits(48)
        self.check_policy()
        self._client.run([("SET", name, self._count)])

    def check_policy(self) -> None:
        """Raises StateBackendError if the server forgets keys when its memory is full."""
        facts = dict(line.split(b":", 1) for line in self._client.run([("INFO", "memory")])[0].splitlines() if b":" in line)
        policy = facts.get(b"maxmemory_policy", b"noeviction").decode(errors="replace")
        if policy.startswith(_CACHES):
            raise self._client.failed(
                f"forgets keys when its memory is full (maxmemory-policy {policy}), and state with them: "
                "set maxmemory-policy noeviction, or use another server for state"
            )

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """The reply of each command. Raises StateBackendError as the client does, and if the server has lost what was written."""
        if not commands:
            return []
        *replies, count = self._client.run([*commands, ("INCR", self._name)])
        self._count += 1
        if count != self._count:
            raise self._client.failed(
                "has lost what was written to it: it was flushed, or went back to an older copy, or another job of this name uses it"
            )
        return replies

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()
