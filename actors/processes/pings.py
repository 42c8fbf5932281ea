"""Heartbeats: which workers' processes have not answered for too long.

A process that was stopped or hangs in the kernel doesn't end, so nothing but its silence tells. A user's function that computes for long is
no silence: calls are answered by other threads.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import ray

from ...engine.protocol.ids import WorkerId

EVERY = 1.0
"""Seconds between two questions to one worker."""


class Pings:
    """`timeout`: seconds of silence that a worker may have."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._asked: dict[WorkerId, tuple[Any, float]] = {}
        self._heard: dict[WorkerId, float] = {}

    def forget(self, worker: WorkerId) -> None:
        """It is gone."""
        self._asked.pop(worker, None)
        self._heard.pop(worker, None)

    def silent(self, workers: Mapping[WorkerId, Any]) -> dict[WorkerId, str]:
        """Ping the workers that are due. Returns the workers that have not answered for too long, each with the problem."""
        now = time.monotonic()
        answered, _ = (
            ray.wait([ref for ref, _ in self._asked.values()], num_returns=len(self._asked), timeout=0) if self._asked else ([], [])
        )
        done = set(answered)
        for name, (ref, asked) in list(self._asked.items()):
            if ref in done:
                self._heard[name] = now
                if now - asked >= EVERY:
                    del self._asked[name]
        for name, worker in workers.items():
            self._heard.setdefault(name, now)
            if name not in self._asked:
                self._asked[name] = worker.ping.remote(), now
        return {
            name: f"it has not answered for {now - heard:.0f} s (WorkerConfig(heartbeat_timeout=...) sets the bound)"
            for name, heard in self._heard.items()
            if name in workers and now - heard > self._timeout
        }
