"""The code that a task's thread runs now: for how long it has been in one call, and the stack of that call.

The thread itself only notes when it begins and ends a call; another thread of its process looks. So a function that does not
return can be named, as long as it lets other threads run. Of coroutines, the one that runs or has waited longest is named, with the
stack in which it waits.

>>> code = RunningCode()
>>> code.begin()
>>> code.long_call(at_least=0.0) is None
False
>>> code.end()
>>> code.long_call(at_least=0.0) is None
True
"""

from __future__ import annotations

import sys
from threading import get_ident
from time import monotonic
from types import FrameType

from ...engine.operators.base import OperatorInstance
from ...scheduler.load.long_call import LONG_SECONDS, LongCall

FRAMES = 20
"""The most frames of a stack that are shown: the innermost and the first."""

_OWN = "evenflow."
"""The beginning of the names of this package's modules."""

_EVENT_LOOP = f"{_OWN}engine.functions.event_loop"
"""The module that awaits coroutines; it is slow to load, so this one doesn't import it."""


class RunningCode:
    """The running code of one task. `begun`: when the present call began, by the clock `monotonic`; None between two calls."""

    __slots__ = ("begun", "thread")

    def __init__(self) -> None:
        self.begun: float | None = None
        self.thread = 0
        """The thread of the task."""

    def begin(self) -> None:
        """Note that the calling thread, which is the task's, begins a call."""
        self.thread, self.begun = get_ident(), monotonic()

    def end(self) -> None:
        """Note that the call has ended."""
        self.begun = None

    def long_call(self, at_least: float | None = None) -> LongCall | None:
        """Return the present call if it has run for that many seconds, by default `LONG_SECONDS`. May be called by any thread."""
        begun, least = self.begun, LONG_SECONDS if at_least is None else at_least
        if begun is None or (seconds := monotonic() - begun) < least:
            return None
        frames = _stack(sys._current_frames().get(self.thread))  # noqa: SLF001 -- no other way to another thread's frame
        at, instance = _operator(frames)
        operator = "" if instance is None else instance.context.name
        if instance is None or (call := instance.present_call()) is None:
            found = LongCall(seconds, operator, _shown(frames[_users(frames, at) :]))
        elif (age := monotonic() - call.begun) < least:
            found = LongCall(seconds, operator)  # many calls for one batch, each of them short
        else:
            waits = [] if call.runs else call.frames()
            found = LongCall(age, operator, _shown(waits or frames[_users(frames, _event_loop(frames, at)) :]))
        return found if self.begun == begun else None


def _stack(innermost: FrameType | None) -> list[FrameType]:
    """Return the frames of a thread, the outermost first."""
    frames: list[FrameType] = []
    while innermost is not None:
        frames.append(innermost)
        innermost = innermost.f_back
    return frames[::-1]


def _operator(frames: list[FrameType]) -> tuple[int, OperatorInstance | None]:
    """Return the innermost operator whose code runs, and the place of its frame; without one, that of the worker's first frame."""
    own = [at for at, frame in enumerate(frames) if _is_own(frame)]
    for at in reversed(own):
        if isinstance(me := frames[at].f_locals.get("self"), OperatorInstance):
            return at, me
    return own[0] if own else -1, None


def _users(frames: list[FrameType], behind: int) -> int:
    """Return the place of the first frame behind another that is not this package's; of the innermost one if none is."""
    return max(0, next((at for at in range(behind + 1, len(frames)) if not _is_own(frames[at])), len(frames) - 1))


def _event_loop(frames: list[FrameType], behind: int) -> int:
    """Return the place of the event loop's frame that runs a coroutine, `behind` if none does."""
    return max((at for at, frame in enumerate(frames) if frame.f_globals.get("__name__") == _EVENT_LOOP), default=behind)


def _is_own(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(_OWN)


def _shown(frames: list[FrameType]) -> tuple[str, ...]:
    shown = [_place(frame) for frame in frames]
    return tuple(shown if len(shown) <= FRAMES else [shown[0], *shown[1 - FRAMES :]])


def _place(frame: FrameType) -> str:
    name = frame.f_code.co_qualname.rpartition("<locals>.")[2]
    return f"{name} ({frame.f_code.co_filename}:{frame.f_lineno})"
