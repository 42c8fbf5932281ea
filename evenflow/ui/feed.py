"""The server's side of the follower: starts it, hears it, and starts another when it is gone."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from ..engine.errors import RequestError
from .actions import Action
from .asked import Answer
from .frames import LENGTH, packed, unpacked
from .heard import Answered, Asked, Heard, Unlinked

QUIET = 10.0
"""Seconds without a word after which pages are told that nothing is heard."""

SILENT = 60.0
"""Seconds without a word after which the follower is replaced: its cluster may be gone."""

PATIENCE = 30.0
"""Seconds for an answer to an action."""

AGAIN = 1.0
"""Seconds before another follower is started."""


class Feed:
    """`hear` is called with everything that followers tell; `job` as for them, None for all."""

    def __init__(self, hear: Callable[[Heard], None], job: str | None) -> None:
        self._hear, self._job = hear, job

        self._follower: Process | None = None
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        self._numbers = count()

    async def act(self, job: str, request: Action) -> Answer:
        """Have a job carry out a request; what the page is told of it. Raises RequestError if it was refused or nobody answers."""
        if self._follower is None or self._follower.stdin is None:
            raise RequestError("the cluster can't be reached just now")
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self._follower.stdin.write(packed(Asked(number, job, request)))
            await self._follower.stdin.drain()
            return await asyncio.wait_for(answer, PATIENCE)
        except (TimeoutError, ConnectionError) as error:
            raise RequestError(f"the job has not answered within {PATIENCE:g} s: look at its decisions for what became of it") from error
        finally:
            self._asked.pop(number, None)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            follower = self._follower = await self._start()
            try:
                await self._listen(follower)
            finally:
                self._follower = None
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
            try:
                done, _ = await asyncio.wait([heard], timeout=QUIET)
                if not done:
                    self._hear(Unlinked("", "lost", f"nothing has been heard of the cluster for {QUIET:g} s"))
                    done, _ = await asyncio.wait([heard], timeout=SILENT - QUIET)
                if not done:
                    return
                self._take(heard.result())
            except asyncio.IncompleteReadError:
                return
            finally:
                heard.cancel()  # waiting for it doesn't end it

    def _take(self, heard: Heard) -> None:
        if not isinstance(heard, Answered):
            self._hear(heard)
        elif (answer := self._asked.get(heard.number)) is not None and not answer.done():
            if heard.problem:
                answer.set_exception(RequestError(heard.problem))
            else:
                answer.set_result(heard.answer)


async def _next(pipe: asyncio.StreamReader) -> Heard:
    length = int.from_bytes(await pipe.readexactly(LENGTH), "big")
    heard: Heard = unpacked(await pipe.readexactly(length))
    return heard
