"""What travels on a channel: data, and the in-band signals that keep their place among the data.

A channel is first in, first out, so a signal says something about everything that was sent before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..batch import Batch

MIN_TIME = -(2**63) + 1
"""The watermark of a channel that has said nothing yet, in microseconds."""

MAX_TIME = 2**63 - 1
"""The watermark at the end of a stream, in microseconds."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """Every record sent after it has an event time of at least `time` (microseconds since the epoch)."""

    time: int


@dataclass(frozen=True, slots=True)
class LatencyMark:
    """Left a source at `created` (nanoseconds, wall clock): its age at a sink is the end-to-end latency."""

    created: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """Records before it belong to checkpoint `checkpoint` or an earlier one, records after it to a later one.

    `base`: the newest complete checkpoint, behind which only changes need be saved; 0: everything must be.
    """

    checkpoint: int
    base: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """Nothing follows on this channel."""


@dataclass(frozen=True, slots=True)
class Marker:
    """Records before it went by the routing table before step `version` of a reconfiguration, records after it by the one after."""

    version: int


@dataclass(frozen=True, slots=True)
class Rewind:
    """As `Watermark`, but `time` may be earlier than what was said before: the sender takes over records that another had not read.

    All senders of its stage say it in one reconfiguration, before any of them goes on, so that no event time is passed too early.
    """

    time: int


@dataclass(frozen=True, slots=True)
class TransferStart:
    """The state that moves to this worker in step `version` follows, in chunks."""

    version: int


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """The next batch on this channel holds keys whose state is to be fetched at once: request `number` in step `version`."""

    version: int
    number: int


@dataclass(frozen=True, slots=True)
class FetchReply:
    """Everything that fetch request `number` asked for has been sent before this, or never was there."""

    version: int
    number: int


@dataclass(frozen=True, slots=True)
class TransferEnd:
    """All state that moves to this worker in step `version` has been sent."""

    version: int


Element = Batch | Watermark | Rewind | LatencyMark | Barrier | End | Marker | TransferStart | FetchRequest | FetchReply | TransferEnd
