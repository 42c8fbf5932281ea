"""The in-band signals as header fields: one line per kind.

A code is never given to another kind, and `from_fields(*to_fields(signal))` is the signal again.

>>> barrier = BY_TYPE[Barrier]
>>> barrier.to_fields(Barrier(7)), barrier.from_fields(7)
((7,), Barrier(checkpoint=7))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..engine.elements import MAX_TIME, MIN_TIME, Barrier, Element, End, LatencyMark, Watermark
from .headers import number


@dataclass(frozen=True, slots=True)
class SignalKind:
    """How one type of signal is written into a header and read back.

    `from_fields` checks every field: it raises ProtocolError (or TypeError for a wrong number of fields), never guesses.
    """

    code: int
    signal: type[Element]
    to_fields: Callable[[Any], tuple[Any, ...]]
    from_fields: Callable[..., Element]


BATCH = 0
"""The code of a batch, which has frames of its own and so no line in the table."""

KINDS = (
    SignalKind(1, Watermark, lambda s: (s.time,), lambda time: Watermark(number(time, "watermark", MIN_TIME, MAX_TIME))),
    SignalKind(2, LatencyMark, lambda s: (s.created,), lambda created: LatencyMark(number(created, "latency mark"))),
    SignalKind(3, Barrier, lambda s: (s.checkpoint,), lambda checkpoint: Barrier(number(checkpoint, "checkpoint"))),
    SignalKind(4, End, lambda _: (), lambda: End()),
)

BY_TYPE: dict[type[Element], SignalKind] = {kind.signal: kind for kind in KINDS}
BY_CODE: dict[int, SignalKind] = {kind.code: kind for kind in KINDS}
