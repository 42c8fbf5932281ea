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
from dataclasses import dataclass
from typing import Any
from warnings import warn

from ..errors import RecordError, shown
from .error_policy import function_name
from .function_class import class_of, made
from .running_call import RunningCall


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of row `place`: its `value`, or the `error` that its coroutine ended with."""

    place: int
    value: Any
    error: BaseException | None = None


class EventLoop:
    """Calls a user's coroutine on rows. Used by one thread. `timeout`: seconds that a call may take, None for no limit.

    A class in place of a function is instantiated, and closed, inside the loop, so that it can hold a client that belongs to it.
    Raises RecordError, naming the operator, for a constructor that raises.
    """

    def __init__(self, function: Any, operator: str, *, concurrency: int, timeout: float | None) -> None:
        self._given, self._operator, self._concurrency, self._timeout = function, operator, concurrency, timeout
        self._running: dict[int, RunningCall] = {}
        """The calls that have begun and not ended, the oldest first."""
        self._loop = asyncio.new_event_loop()
        try:
            self._function: Callable[[Any], Coroutine[Any, Any, Any]] = self._loop.run_until_complete(self._make())
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

    async def _make(self) -> Any:
        return made(self._given, self._operator)

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
