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
    """The promise that every later record has an event time of at least `time` (microseconds since the epoch)."""

    time: int


@dataclass(frozen=True, slots=True)
class LatencyMark:
    """A mark that left a source at `created` (nanoseconds, wall clock): its age at a sink is the end-to-end latency."""

    created: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """The boundary of a checkpoint: records before it belong to `checkpoint` or an earlier one, records after it to a later one.

    `base`: the newest complete checkpoint, since which only changes need to be saved; 0: everything must be saved. `last`:
    nothing follows it on the channel, not even an `End`; the job stops there, with the results its operators still hold.
    """

    checkpoint: CheckpointNumber
    base: CheckpointNumber = NO_CHECKPOINT
    last: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """The last element of a channel."""


@dataclass(frozen=True, slots=True)
class Marker:
    """The boundary of a migration step: records before it were routed by the previous table, records after it by step
    `version`'s.
    """

    version: StepVersion


@dataclass(frozen=True, slots=True)
class Rewind:
    """A watermark that may be earlier than before: the sender takes over records that another worker had not read.

    All senders of its stage send one in the same reconfiguration, before any of them reads on, so event time never advances too
    early.
    """

    time: int


@dataclass(frozen=True, slots=True)
class TransferStart:
    """The announcement of the state that moves to this worker in step `version`, which follows in chunks.

    `watermark`: the event time of its old owner.
    """

    version: StepVersion
    watermark: int


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """The announcement that the next batch on this channel holds the keys to fetch: request `number` in step `version`."""

    version: StepVersion
    number: int


@dataclass(frozen=True, slots=True)
class FetchReply:
    """The end of the answer to fetch request `number`: all requested state that exists has been sent."""

    version: StepVersion
    number: int


@dataclass(frozen=True, slots=True)
class TransferEnd:
    """The end of the state that moves to this worker in step `version`."""

    version: StepVersion


Element = Batch | Watermark | Rewind | LatencyMark | Barrier | End | Marker | TransferStart | FetchRequest | FetchReply | TransferEnd
