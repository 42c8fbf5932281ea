"""Heartbeats, which find workers' processes that have not answered for too long.

A process that was stopped or hangs in the kernel doesn't end, so only its silence shows that. A user's function that computes for
long is no silence: calls are answered by other threads.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import ray

from ...engine.protocol.ids import WorkerId

EVERY = 1.0
"""Seconds between two pings of one worker."""


class Pings:
    """The pings of a job's workers. `timeout`: the longest allowed silence in seconds."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._queries: dict[WorkerId, tuple[Any, float]] = {}
        self._answered_at: dict[WorkerId, float] = {}

    def forget(self, worker: WorkerId) -> None:
        """Stop pinging a worker."""
        self._queries.pop(worker, None)
        self._answered_at.pop(worker, None)

    def silent(self, workers: Mapping[WorkerId, Any]) -> dict[WorkerId, str]:
        """Ping the workers that are due. Returns the workers that have not answered for too long, each with the problem."""
        now = time.monotonic()
        answered, _ = (
            ray.wait([ref for ref, _ in self._queries.values()], num_returns=len(self._queries), timeout=0) if self._queries else ([], [])
        )
        done = set(answered)
        for name, (ref, asked) in list(self._queries.items()):
            if ref in done:
                self._answered_at[name] = now
                if now - asked >= EVERY:
                    del self._queries[name]
        for name, worker in workers.items():
            self._answered_at.setdefault(name, now)
            if name not in self._queries:
                self._queries[name] = worker.ping.remote(), now
        return {
            name: f"it has not answered for {now - answered:.0f} s (WorkerConfig(heartbeat_timeout=...) sets the bound)"
            for name, answered in self._answered_at.items()
            if name in workers and now - answered > self._timeout
        }
