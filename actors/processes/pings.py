"""Heartbeats, which find workers' processes that have not answered for too long.

A process that was stopped or hangs in the kernel doesn't end, so only its silence shows that. A user's function that computes for
long is no silence: calls are answered by other threads.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError

from ...engine.protocol.ids import WorkerId
from ...scheduler.load.long_call import LONG_SECONDS, LongCall

EVERY = 1.0
"""Seconds between two pings of one worker."""


class Pings:
    """The pings of a job's workers. `timeout`: the longest allowed silence in seconds."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._queries: dict[WorkerId, tuple[Any, float]] = {}
        self._answered_at: dict[WorkerId, float] = {}
        self._unread: set[WorkerId] = set()
        """The workers whose answer to the present ping has not been read."""
        self._calls: dict[WorkerId, LongCall] = {}

    def long_calls(self) -> dict[WorkerId, LongCall]:
        """Return the workers that were in one call for long when they last answered, and those that have not answered for as long."""
        now = time.monotonic()
        silences = {name: now - answered for name, answered in self._answered_at.items() if now - answered >= LONG_SECONDS}
        return self._calls | {name: LongCall(silence, answered=False) for name, silence in silences.items()}

    def forget(self, worker: WorkerId) -> None:
        """Stop pinging a worker."""
        self._queries.pop(worker, None)
        self._answered_at.pop(worker, None)
        self._calls.pop(worker, None)

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
                self._note(name, ref)
                if now - asked >= EVERY:
                    del self._queries[name]
        for name, worker in workers.items():
            self._answered_at.setdefault(name, now)
            if name not in self._queries:
                self._queries[name] = worker.ping.remote(), now
                self._unread.add(name)
        return {
            name: f"it has not answered for {now - answered:.0f} s (WorkerConfig(heartbeat_timeout=...) sets the bound)"
            for name, answered in self._answered_at.items()
            if name in workers and now - answered > self._timeout
        }

    def _note(self, worker: WorkerId, answer: Any) -> None:
        """Read the answer to a ping, once: the call that the worker has been in for long, if there is one."""
        if worker not in self._unread:
            return
        self._unread.discard(worker)
        self._calls.pop(worker, None)
        with suppress(RayError):  # a process that has ended, or can no longer be used, is another's concern
            if (call := ray.get(answer)) is not None:
                self._calls[worker] = call
