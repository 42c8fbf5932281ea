"""`evenflow k8s submit`: submits a program to a Ray cluster, and follows it to its end.

Invariant: at most one program of a run is running. The process that follows it may be replaced, because the program does not end
with it. A program that was lost with its cluster is submitted again; one that has failed is left to the caller, who waits longer
each time.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

RUN = "evenflow-run"
"""The metadata of a submission: the run that it belongs to."""

PAUSE = 3.0
"""Seconds between two looks at a cluster that doesn't answer, or a program whose log has ended."""

RUNNING, ENDED = ("PENDING", "RUNNING"), ("SUCCEEDED", "STOPPED")
_SIGTERM = 143


class Client(Protocol):
    """The part of Ray's JobSubmissionClient that this module uses."""

    def list_jobs(self) -> list[Any]: ...

    def submit_job(self, *, entrypoint: str, submission_id: str, metadata: dict[str, str]) -> str: ...

    def tail_job_logs(self, job_id: str) -> Any: ...


class Follower:
    """A process that follows the program of a run. `connect` returns a client, or raises if the cluster doesn't answer."""

    def __init__(
        self,
        connect: Callable[[], Client],
        run: str,
        entrypoint: str,
        write: Callable[[str], Any],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connect, self._run, self._entrypoint = connect, run, entrypoint
        self._write, self._pause = write, pause
        self._followed: str | None = None

    def follow(self) -> int:
        """Submit the program unless it runs; return 0 when it has ended or was stopped, and 1 when it has failed."""
        while True:
            try:
                code = self._look(self._connect())
            except (OSError, RuntimeError) as error:  # what Ray's client raises if the head is away
                self._write(f"the Ray cluster doesn't answer: {error}\n")
                code = None
            if code is not None:
                return code
            self._pause(PAUSE)

    def _look(self, client: Client) -> int | None:
        """Return the exit code, or None as long as there is none."""
        found = self._newest(client)
        if found is None or (found.status not in (*RUNNING, *ENDED) and found.submission_id != self._followed):
            self._followed = f"evenflow-{secrets.token_hex(6)}"
            client.submit_job(entrypoint=self._entrypoint, submission_id=self._followed, metadata={RUN: self._run})
            self._write(f"submitted {self._followed}: {self._entrypoint}\n")
        elif found.status in RUNNING:
            if self._followed != found.submission_id:
                self._write(f"{found.submission_id} is running already\n")
            self._followed = found.submission_id
        else:
            self._write(f"{found.submission_id} has ended: {found.status.lower()}\n")
            return 0 if found.status in ENDED else 1
        assert self._followed is not None
        asyncio.run(self._print_log(client, self._followed))
        return None

    def _newest(self, client: Client) -> Any:
        own = [job for job in client.list_jobs() if (job.metadata or {}).get(RUN) == self._run]
        return max(own, key=lambda job: job.start_time or 0, default=None)

    async def _print_log(self, client: Client, submission: str) -> None:
        async for text in client.tail_job_logs(submission):
            self._write(text)


def run(address: str, name: str, entrypoint: str) -> int:
    """Submit the program of the run `name` to the cluster with this dashboard, and follow it. A SIGTERM ends the following only."""
    from ray.job_submission import JobSubmissionClient

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    # A container's first process ignores signals without a handler.
    with suppress(ValueError):  # in another thread than the main one
        signal.signal(signal.SIGTERM, lambda *_: os._exit(_SIGTERM))
    return Follower(lambda: JobSubmissionClient(address), name, entrypoint, write).follow()
