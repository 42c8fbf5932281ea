"""An event loop in the worker's thread that runs a user's coroutines, several at a time, until all have ended.

Invariant: between two calls no coroutine is running. So a barrier, a marker and a snapshot see each record either before its
coroutine began or after it ended, and nothing of it is lost or done twice in the state of the job.

>>> async def doubled(row):
...     return row["n"] * 2
>>> loop = EventLoop(doubled, "call", concurrency=2, timeout=None)
>>> [outcome.value for outcome in loop.outcomes([{"n": 1}, {"n": 2}, {"n": 3}], stop=True)]
[2, 4, 6]
>>> loop.close()
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from warnings import warn

from ..errors import RecordError, shown
from .error_policy import function_name
from .function_class import class_of, made, open_object, open_raised
from .measures import FunctionContext
from .retries import ONCE, Retries, tried
from .running_call import RunningCall


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of row `place`: its `value`, or the `error` that its last coroutine ended with, and what was `tried` before."""

    place: int
    value: Any
    error: BaseException | None = None
    tried: str = ""


class EventLoop:
    """Calls a user's coroutine on rows. Used by one thread. `timeout`: seconds that a call may take, None for no limit.

    A call that raises an Exception, or takes too long, is repeated as `retries` say; `seed` is for their pauses.

    A class in place of a function is instantiated, opened with `context` and closed inside the loop, so that it can hold a client
    that belongs to it. Raises RecordError, naming the operator, for a constructor or `open` that raises.
    """

    def __init__(
        self,
        function: Any,
        operator: str,
        *,
        concurrency: int,
        timeout: float | None,
        retries: Retries = ONCE,
        seed: str = "",
        context: FunctionContext | None = None,
    ) -> None:
        self._given, self._operator, self._concurrency, self._timeout = function, operator, concurrency, timeout
        self._retries, self._random = retries, Random(seed)  # noqa: S311 -- no secret
        self._running: dict[int, RunningCall] = {}
        """The calls that have begun and not ended, the oldest first."""
        self._loop = asyncio.new_event_loop()
        try:
            self._function: Callable[[Any], Coroutine[Any, Any, Any]] = self._loop.run_until_complete(self._make(context))
        except BaseException:
            self._loop.close()
            raise

    def outcomes(self, rows: Sequence[Any], *, stop: bool) -> list[CallOutcome]:
        """Return the outcomes of all rows, in the order in which they ended; with `stop` only up to the first error."""
        return self._loop.run_until_complete(self._run(rows, stop))

    def present_call(self) -> RunningCall | None:
        """Return the call whose code runs now, or else the oldest of those that wait; None between two batches.

        May be called by any thread.
        """
        calls = list(self._running.copy().values())
        return next((call for call in calls if call.runs), calls[0] if calls else None)

    def close(self) -> None:
        """Close the user's object, and the loop. An error in it becomes a warning: all records are processed."""
        if self._loop.is_closed():
            return
        try:
            self._loop.run_until_complete(self._close())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def _make(self, context: FunctionContext | None) -> Any:
        called = made(self._given, self._operator)
        if context is not None and class_of(self._given) is not None:
            opening = open_object(called, context)
            if inspect.isawaitable(opening):
                try:
                    await opening
                except BaseException as error:
                    raise open_raised(called, context, error) from error
        return called

    async def _run(self, rows: Sequence[Any], stop: bool) -> list[CallOutcome]:
        ended: list[CallOutcome] = []
        left = iter(enumerate(rows))
        tasks = [asyncio.ensure_future(self._work(left, ended, stop)) for _ in range(min(self._concurrency, len(rows)))]
        waiting = set(tasks)
        while waiting:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            failed = next((place for place, outcome in enumerate(ended) if outcome.error is not None), None) if stop else None
            if failed is not None:
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
                return ended[: failed + 1]
        return ended

    async def _work(self, left: Iterator[tuple[int, Any]], ended: list[CallOutcome], stop: bool) -> None:
        """Take rows, one after the other, until none is left."""
        for place, row in left:
            outcome = await self._outcome(place, row)
            ended.append(outcome)
            if stop and outcome.error is not None:
                return

    async def _outcome(self, place: int, row: Any) -> CallOutcome:
        began, errors = self._loop.time(), list[BaseException]()
        while True:
            outcome = await self._call(place, row)
            if outcome.error is None:
                return outcome
            errors.append(outcome.error)
            passing = isinstance(outcome.error, Exception) and not isinstance(outcome.error, MemoryError)
            pause = self._retries.pause(len(errors), self._random) if passing else None
            if pause is None:
                return replace(outcome, tried=tried(errors, self._loop.time() - began)) if len(errors) > 1 else outcome
            await asyncio.sleep(pause)

    async def _call(self, place: int, row: Any) -> CallOutcome:
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                awaitable = self._function(row)
                self._running[place] = RunningCall(self._loop.time(), awaitable)
                return CallOutcome(place, await awaitable)
        except BaseException as error:  # noqa: BLE001 -- a user's coroutine may raise anything
            if limit.expired():
                called = function_name(self._given)
                problem = f"{called} has not ended after {self._timeout:g} s: check what it waits for, or raise timeout="
                return CallOutcome(place, None, RecordError(self._operator, problem))
            return CallOutcome(place, None, error)
        finally:
            self._running.pop(place, None)

    async def _close(self) -> None:
        close = getattr(self._function, "close", None)
        if class_of(self._given) is None or not callable(close):
            return
        try:
            closing = close()
            if inspect.isawaitable(closing):
                await closing
        except Exception as error:  # noqa: BLE001 -- a user's method may raise anything, and other operators must be closed too
            warn(f"operator `{self._operator}`: {function_name(self._given)}.close raised {shown(error)}", RuntimeWarning, stacklevel=2)
