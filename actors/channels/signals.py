"""The in-band signals as header fields: one line per kind.

A code is never reused for another kind, and `from_fields(*to_fields(signal))` is the signal again.

>>> barrier = BY_TYPE[Barrier]
>>> barrier.to_fields(Barrier(7, 5)), barrier.from_fields(7, 5, 0)
((7, 5, 0), Barrier(checkpoint=7, base=5, last=False))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...engine.protocol.elements import (
    MAX_TIME,
    MIN_TIME,
    Barrier,
    Element,
    End,
    FetchReply,
    FetchRequest,
    LatencyMark,
    Marker,
    Rewind,
    TransferEnd,
    TransferStart,
    Watermark,
)
from ...engine.protocol.ids import CheckpointNumber, StepVersion
from .headers import number


@dataclass(frozen=True, slots=True)
class SignalKind:
    """The conversion of one type of signal to header fields and back.

    `from_fields` checks every field: it raises ProtocolError (or TypeError for a wrong number of fields), never guesses.
    """

    code: int
    signal: type[Element]
    to_fields: Callable[[Any], tuple[Any, ...]]
    from_fields: Callable[..., Element]


def _numbered(signal: Any) -> tuple[Any, ...]:
    return signal.version, signal.number


def _barrier(checkpoint: Any, base: Any, last: Any) -> Barrier:
    numbers = CheckpointNumber(number(checkpoint, "checkpoint")), CheckpointNumber(number(base, "base"))
    return Barrier(*numbers, last=bool(number(last, "last", 0, 1)))


def _version(value: Any) -> StepVersion:
    return StepVersion(number(value, "version"))


def _transfer_start(version: Any, watermark: Any) -> TransferStart:
    return TransferStart(_version(version), number(watermark, "watermark", MIN_TIME, MAX_TIME))


BATCH = 0
"""The code of a batch, which has separate frames and so no line in the table."""

KINDS = (
    SignalKind(1, Watermark, lambda s: (s.time,), lambda time: Watermark(number(time, "watermark", MIN_TIME, MAX_TIME))),
    SignalKind(2, LatencyMark, lambda s: (s.created,), lambda created: LatencyMark(number(created, "latency mark"))),
    SignalKind(3, Barrier, lambda s: (s.checkpoint, s.base, int(s.last)), _barrier),
    SignalKind(4, End, lambda _: (), lambda: End()),
    SignalKind(5, Marker, lambda s: (s.version,), lambda version: Marker(_version(version))),
    SignalKind(9, TransferStart, lambda s: (s.version, s.watermark), _transfer_start),
    SignalKind(6, FetchRequest, _numbered, lambda v, n: FetchRequest(_version(v), number(n, "request"))),
    SignalKind(7, FetchReply, _numbered, lambda v, n: FetchReply(_version(v), number(n, "request"))),
    SignalKind(10, Rewind, lambda s: (s.time,), lambda time: Rewind(number(time, "event time", MIN_TIME, MAX_TIME))),
    SignalKind(8, TransferEnd, lambda s: (s.version,), lambda version: TransferEnd(_version(version))),
)

BY_TYPE: dict[type[Element], SignalKind] = {kind.signal: kind for kind in KINDS}
BY_CODE: dict[int, SignalKind] = {kind.code: kind for kind in KINDS}
