"""What travels on a channel: data, and the in-band signals that keep their place among the data.

A channel is first in, first out, so a signal says something about everything that was sent before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .batch import Batch

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
    """Records before it belong to checkpoint `checkpoint` or an earlier one, records after it to a later one."""

    checkpoint: int


@dataclass(frozen=True, slots=True)
class End:
    """Nothing follows on this channel."""


Element = Batch | Watermark | LatencyMark | Barrier | End
