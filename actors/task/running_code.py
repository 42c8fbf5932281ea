"""The code that a task's thread runs now: for how long it has been in one call, and the stack of that call.

The thread itself only notes when it begins and ends a call; another thread of its process looks. So a function that does not
return can be named, as long as it lets other threads run.

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
        operator, stack = shown_stack(sys._current_frames().get(self.thread))  # noqa: SLF001 -- no other way to another thread's frame
        return LongCall(seconds, operator, stack) if self.begun == begun else None


def shown_stack(innermost: FrameType | None) -> tuple[str, tuple[str, ...]]:
    """Return the operator whose code runs, empty if none does, and the part of the stack that a user knows, the outermost first.

    That part begins at the first frame behind the operator, or the worker, that is not this package's; without one, it is the
    innermost frame.
    """
    frames: list[FrameType] = []
    while innermost is not None:
        frames.insert(0, innermost)
        innermost = innermost.f_back
    own = [at for at, frame in enumerate(frames) if str(frame.f_globals.get("__name__")).startswith(_OWN)]
    behind, operator = own[0] if own else -1, ""
    for at in own:
        me = frames[at].f_locals.get("self")
        if isinstance(me, OperatorInstance):
            behind, operator = at, me.context.name
    users = next((at for at in range(behind + 1, len(frames)) if at not in own), len(frames) - 1)
    shown = [_place(frame) for frame in frames[max(0, users) :]]
    return operator, tuple(shown if len(shown) <= FRAMES else [shown[0], *shown[1 - FRAMES :]])


def _place(frame: FrameType) -> str:
    name = frame.f_code.co_qualname.rpartition("<locals>.")[2]
    return f"{name} ({frame.f_code.co_filename}:{frame.f_lineno})"
