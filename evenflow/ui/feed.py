"""The server's side of the follower: starts it, hears it, and starts another when it is gone."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress

from .frames import LENGTH, unpacked
from .heard import Heard, Unlinked

QUIET = 10.0
"""Seconds without a word after which pages are told that nothing is heard."""

SILENT = 60.0
"""Seconds without a word after which the follower is replaced: its cluster may be gone."""

AGAIN = 1.0
"""Seconds before another follower is started."""


class Feed:
    """`hear` is called with everything that followers tell; `job` as for them, None for all."""

    def __init__(self, hear: Callable[[Heard], None], job: str | None) -> None:
        self._hear, self._job = hear, job

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            follower = await self._start()
            try:
                await self._listen(follower)
            finally:
                with suppress(ProcessLookupError):
                    follower.kill()
                await follower.wait()
            self._hear(Unlinked("", "lost", "the Ray cluster is gone, or can't be reached; trying again"))
            await asyncio.sleep(AGAIN)

    async def _start(self) -> Process:
        environment = {**os.environ, "RAY_gcs_rpc_server_reconnect_timeout_s": "10"}
        job = [] if self._job is None else [self._job]
        return await asyncio.create_subprocess_exec(
            sys.executable, "-W", "ignore", "-m", "evenflow.ui.follower", *job, stdin=PIPE, stdout=PIPE, env=environment
        )

    async def _listen(self, follower: Process) -> None:
        """Until it has ended, or says nothing for too long."""
        assert follower.stdout is not None
        while True:
            heard = asyncio.ensure_future(_next(follower.stdout))
            done, _ = await asyncio.wait([heard], timeout=QUIET)
            if not done:
                self._hear(Unlinked("", "lost", f"nothing has been heard of the cluster for {QUIET:g} s"))
                done, _ = await asyncio.wait([heard], timeout=SILENT - QUIET)
            if not done:
                heard.cancel()
                return
            try:
                self._hear(heard.result())
            except asyncio.IncompleteReadError:
                return


async def _next(pipe: asyncio.StreamReader) -> Heard:
    length = int.from_bytes(await pipe.readexactly(LENGTH), "big")
    heard: Heard = unpacked(await pipe.readexactly(length))
    return heard
