"""The server's connection to the follower: starts it, receives its messages, and replaces it when it is lost."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from ..connectors.pipes import LENGTH, framed
from ..engine.errors import RequestError
from .actions import Action
from .looks import KeyLook, Look, TableLook
from .messages import ActionDone, ActionWanted, Message, Unlinked, packed, unpacked
from .queries import Answer

QUIET = 10.0
"""Seconds without a message after which pages report that the cluster is silent."""

SILENT = 60.0
"""Seconds without a message after which the follower is replaced: its cluster may be lost."""

PATIENCE = 30.0
"""Seconds to wait for the outcome of an action."""

AGAIN = 1.0
"""Seconds before another follower is started."""


class Feed:
    """A connection to followers of `job`, or of all jobs. `receive` is called with each of their messages."""

    def __init__(self, receive: Callable[[Message], None], job: str | None) -> None:
        self._receive, self._job = receive, job
        self._follower: Process | None = None
        self._pending: dict[int, asyncio.Future[Answer]] = {}
        self._numbers = count()

    async def act(self, job: str, request: Action | Look) -> Answer:
        """Have a job carry out a request, or look at its state; return the answer for the page.

        Raises RequestError if it was refused or not answered.
        """
        if self._follower is None or self._follower.stdin is None:
            raise RequestError("the cluster can't be reached just now")
        number = next(self._numbers)
        answer = self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            self._follower.stdin.write(framed(packed(ActionWanted(number, job, request))))
            await self._follower.stdin.drain()
            return await asyncio.wait_for(answer, PATIENCE)
        except (TimeoutError, ConnectionError) as error:
            rest = "" if isinstance(request, KeyLook | TableLook) else ": check its decisions for the outcome"
            raise RequestError(f"the job has not answered within {PATIENCE:g} s{rest}") from error
        finally:
            self._pending.pop(number, None)

    async def run(self) -> None:
        """Receive messages until this is cancelled."""
        while True:
            follower = self._follower = await self._start()
            try:
                await self._listen(follower)
            finally:
                self._follower = None
                with suppress(ProcessLookupError):
                    follower.kill()
                await follower.wait()
            self._receive(Unlinked("", "lost", "the Ray cluster is lost or can't be reached; trying again"))
            await asyncio.sleep(AGAIN)

    async def _start(self) -> Process:
        environment = {**os.environ, "RAY_gcs_rpc_server_reconnect_timeout_s": "10"}
        job = [] if self._job is None else [self._job]
        return await asyncio.create_subprocess_exec(
            sys.executable, "-W", "ignore", "-m", "evenflow.page.follower", *job, stdin=PIPE, stdout=PIPE, env=environment
        )

    async def _listen(self, follower: Process) -> None:
        """Receive messages until the follower has ended or is silent for too long."""
        assert follower.stdout is not None
        while True:
            message = asyncio.ensure_future(_next(follower.stdout))
            try:
                done, _ = await asyncio.wait([message], timeout=QUIET)
                if not done:
                    self._receive(Unlinked("", "lost", f"the cluster has been silent for {QUIET:g} s"))
                    done, _ = await asyncio.wait([message], timeout=SILENT - QUIET)
                if not done:
                    return
                self._take(message.result())
            except asyncio.IncompleteReadError:
                return
            finally:
                message.cancel()  # waiting for it doesn't end it

    def _take(self, message: Message) -> None:
        if not isinstance(message, ActionDone):
            self._receive(message)
        elif (answer := self._pending.get(message.number)) is not None and not answer.done():
            if message.problem:
                answer.set_exception(RequestError(message.problem))
            else:
                answer.set_result(message.answer)


async def _next(pipe: asyncio.StreamReader) -> Message:
    (length,) = LENGTH.unpack(await pipe.readexactly(LENGTH.size))
    message: Message = unpacked(await pipe.readexactly(length))
    return message
