"""What a source has settled before its readers start: which offsets of which partitions, and how records become rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...engine.functions.error_policy import OnError
from ...engine.time.event_time import EventTime
from .cluster import KafkaCluster
from .decoding import Decoder
from .record_columns import RecordColumns
from .topics import Topics

OnLostOffsets = Literal["stop", "earliest"]


@dataclass(frozen=True, slots=True)
class Extent:
    """The part of a partition that is read: from `start` to before `stop`, None without end; `first`: where its log began."""

    first: int
    start: int
    stop: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """`extents`: by the partition's ordinal. `ids`: of the topics, empty where the broker gives none. `event_time`: None without; by the
    records' timestamps if `by_timestamp`. `idle_after`, `discover_every`: seconds. `endless`: whether `extents` have no ends.
    """

    cluster: KafkaCluster
    topics: Topics
    ids: tuple[str, ...]
    extents: Mapping[int, Extent]
    endless: bool
    decoder: Decoder
    columns: RecordColumns
    event_time: EventTime | None
    by_timestamp: bool
    idle_after: float | None
    on_error: OnError
    on_lost_offsets: OnLostOffsets
    group_id: str | None
    discover_every: float

    @property
    def operator(self) -> str:
        """Its name in errors."""
        return self.cluster.operator
