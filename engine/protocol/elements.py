"""The elements on a channel: batches, and in-band signals that keep their place among them.

A channel is first in, first out, so a signal separates everything sent before it from everything sent after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..batch import Batch
from .ids import NO_CHECKPOINT, CheckpointNumber, StepVersion

MIN_TIME = -(2**63) + 1
"""The watermark of a channel without any watermark yet, in microseconds."""

MAX_TIME = 2**63 - 1
"""The watermark at the end of a stream, in microseconds."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """Every record sent after it has an event time of at least `time` (microseconds since the epoch)."""

    time: int


@dataclass(frozen=True, slots=True)
class LatencyMark:
    """A mark that left a source at `created` (nanoseconds, wall clock): its age at a sink is the end-to-end latency."""

    created: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """Records before it belong to checkpoint `checkpoint` or an earlier one, records after it to a later one.

    `base`: the newest complete checkpoint, since which only changes need to be saved; 0: everything must be saved. `last`: nothing
    follows it on the channel, not even an `End`: the job stops there, with whatever its operators still hold.
    """

    checkpoint: CheckpointNumber
    base: CheckpointNumber = NO_CHECKPOINT
    last: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """Nothing follows on this channel."""


@dataclass(frozen=True, slots=True)
class Marker:
    """Records before it were routed by the table before step `version`, records after it by the table of that step."""

    version: StepVersion


@dataclass(frozen=True, slots=True)
class Rewind:
    """As `Watermark`, but `time` may be earlier than before: the sender takes over records that another worker had not read.

    All senders of its stage send one in the same reconfiguration, before any of them reads on, so that event time never advances too early.
    """

    time: int


@dataclass(frozen=True, slots=True)
class TransferStart:
    """The state that moves to this worker in step `version` follows, in chunks."""

    version: StepVersion


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """The next batch on this channel holds the keys whose state is fetched: request `number` in step `version`."""

    version: StepVersion
    number: int


@dataclass(frozen=True, slots=True)
class FetchReply:
    """All state that fetch request `number` asked for, as far as it exists, has been sent before this."""

    version: StepVersion
    number: int


@dataclass(frozen=True, slots=True)
class TransferEnd:
    """All state that moves to this worker in step `version` has been sent."""

    version: StepVersion


Element = Batch | Watermark | Rewind | LatencyMark | Barrier | End | Marker | TransferStart | FetchRequest | FetchReply | TransferEnd
