"""A call of a user's coroutine function that has not ended, for another thread that looks at where it waits.

>>> async def fetch(row):
...     await pause()
>>> @types.coroutine
... def pause():
...     yield
>>> call = RunningCall(0.0, fetch({"n": 1}))
>>> call.awaitable.send(None)
>>> call.runs, [frame.f_code.co_name for frame in call.frames()]
(False, ['fetch', 'pause'])
>>> call.awaitable.close()
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call of a coroutine function. `begun`: when, by the clock `time.monotonic`; `awaitable`: its result, a coroutine as a rule."""

    begun: float
    awaitable: Any

    @property
    def runs(self) -> bool:
        """True if its code runs at this moment, so that no other coroutine does."""
        return bool(getattr(self.awaitable, "cr_running", False))

    def frames(self) -> list[types.FrameType]:
        """Return the frames in which it waits, the outermost first; none if it is no coroutine."""
        found: list[types.FrameType] = []
        at = self.awaitable
        while at is not None:
            frame = getattr(at, "cr_frame", None) or getattr(at, "gi_frame", None)
            if frame is not None:
                found.append(frame)
            at = getattr(at, "cr_await", None) or getattr(at, "gi_yieldfrom", None)
        return found
