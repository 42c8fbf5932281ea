"""The plan of a source that all its readers share: the offsets to read of each partition, and how records become rows.

The range of offsets is determined once at the start of the job: later, "latest" and times would differ.

>>> from datetime import datetime, UTC
>>> milliseconds(datetime(1970, 1, 1, 0, 0, 1))
1000
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Literal, TypeAlias

from ....engine.errors import ConnectorError, FlowError
from ....engine.functions.error_policy import OnError
from ....engine.time.event_time import EventTime
from ..cluster import REPLY_SECONDS, KafkaCluster
from ..values.decoding import Decoder
from ..values.record_columns import RecordColumns
from .topics import Offsets, Topics

if TYPE_CHECKING:
    from confluent_kafka import Consumer

OnLostOffsets = Literal["stop", "earliest"]

GivenOffsets: TypeAlias = "Mapping[int, int] | Mapping[tuple[str, int], int]"
"""Offsets by partition, or by topic and partition."""

Start: TypeAlias = "Literal['earliest', 'latest'] | datetime | GivenOffsets"
Until: TypeAlias = "Literal['now'] | datetime | GivenOffsets | None"

MOST_RECORDS = 1_000
"""The most records sampled of each partition."""

MOST_PARTITIONS = 16
"""The most partitions sampled."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The part of a partition that is read: from `start` to before `stop`, None for endless; `first`: the beginning of its log."""

    first: int
    start: int
    stop: int | None


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The plan of a source's readers.

    `extents`: by the partition's ordinal. `ids`: of the topics, empty if unknown. `event_time`: None without one; taken from the
    records' timestamps if `by_timestamp`. `idle_after`, `discover_every`: seconds. `endless`: True if `extents` have no ends.
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
        """The operator's name in errors."""
        return self.cluster.operator


def milliseconds(time: datetime) -> int:
    """Return the milliseconds since 1970; a time without a zone is UTC."""
    return round((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)


def check_bound(bound: Start | Until, words: Sequence[str | None], what: str, topics: Topics, operator: str) -> dict[int, int] | None:
    """Return the offsets by ordinal, or None if `bound` isn't a mapping. Raises FlowError for an invalid bound, one not in
    `words`.
    """
    if isinstance(bound, datetime) or bound is None or isinstance(bound, str):
        if not isinstance(bound, datetime) and bound not in words:
            raise FlowError(f"operator `{operator}`: {what}={bound!r}; expected {_expected(words)}")
        return None
    if not isinstance(bound, Mapping):
        raise FlowError(f"operator `{operator}`: {what}={bound!r}; expected {_expected(words)}")
    return {_ordinal(place, what, topics, operator): _offset(offset, what, operator) for place, offset in bound.items()}


def extents(ordinals: Sequence[int], start: Start, until: Until, topics: Topics, offsets: Offsets, operator: str) -> dict[int, Extent]:
    """Return the range to read of each partition. Raises ConnectorError for a partition or an offset that doesn't exist."""
    firsts, ends = offsets.firsts(ordinals), offsets.ends(ordinals)
    starts = _starts(ordinals, start, topics, offsets, firsts, ends, operator)
    stops = _stops(ordinals, until, topics, offsets, ends, operator)
    return {ordinal: Extent(firsts[ordinal], starts[ordinal], stops[ordinal]) for ordinal in ordinals}


def _starts(
    ordinals: Sequence[int],
    start: Start,
    topics: Topics,
    offsets: Offsets,
    firsts: Mapping[int, int],
    ends: Mapping[int, int],
    operator: str,
) -> dict[int, int]:
    given = check_bound(start, ("earliest", "latest"), "start", topics, operator)
    if given is not None:
        _check_there(given, ordinals, topics, "start", operator)
        for ordinal, offset in given.items():
            if offset > ends[ordinal]:
                raise ConnectorError(
                    f"operator `{operator}`: start={{...: {offset}}}: {topics.shown(ordinal)} ends at offset {ends[ordinal]}"
                )
        return {ordinal: given.get(ordinal, firsts[ordinal]) for ordinal in ordinals}
    if isinstance(start, datetime):
        return _or_end(offsets.since(ordinals, milliseconds(start)), ends)
    return dict(firsts if start == "earliest" else ends)


def _stops(
    ordinals: Sequence[int], until: Until, topics: Topics, offsets: Offsets, ends: Mapping[int, int], operator: str
) -> dict[int, int | None]:
    given = check_bound(until, ("now", None), "until", topics, operator)
    if until is None:
        return dict.fromkeys(ordinals)
    if given is not None:
        _check_there(given, ordinals, topics, "until", operator)
        return {ordinal: given.get(ordinal, ends[ordinal]) for ordinal in ordinals}
    if isinstance(until, datetime):
        return {**_or_end(offsets.since(ordinals, milliseconds(until)), ends)}
    return {**ends}


def _or_end(found: Mapping[int, int | None], ends: Mapping[int, int]) -> dict[int, int]:
    """Replace the offsets of partitions without records as new by their ends, and stop before open transactions."""
    return {ordinal: ends[ordinal] if offset is None else min(offset, ends[ordinal]) for ordinal, offset in found.items()}


def _check_there(given: Mapping[int, int], ordinals: Sequence[int], topics: Topics, what: str, operator: str) -> None:
    missing = next((ordinal for ordinal in given if ordinal not in ordinals), None)
    if missing is not None:
        raise ConnectorError(f"operator `{operator}`: {what} names {topics.shown(missing)}, which isn't there")


def _ordinal(place: object, what: str, topics: Topics, operator: str) -> int:
    if isinstance(place, int) and len(topics.names) == 1:
        return topics.ordinal(topics.names[0], place)
    if isinstance(place, tuple) and len(place) == 2 and place[0] in topics.names and isinstance(place[1], int):
        return topics.ordinal(*place)
    raise FlowError(f"operator `{operator}`: {what} names {place!r}; expected (topic, partition), or a partition if there is one topic")


def _offset(offset: object, what: str, operator: str) -> int:
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        raise FlowError(f"operator `{operator}`: {what} has the offset {offset!r}; expected a number from 0 on")
    return offset


def _expected(words: Sequence[str | None]) -> str:
    return ", ".join([*(repr(word).replace("'", '"') for word in words), "a datetime", "or a dict of offsets by partition"])


def sample(
    cluster: KafkaCluster, topics: Topics, extents: Mapping[int, Extent], ends: Mapping[int, int], group_id: str
) -> list[bytes | None]:
    """Fetch values of the first records to be read of each partition, or of the last ones if there is none to read yet."""
    filled = [ordinal for ordinal, extent in extents.items() if ends[ordinal] > extent.first][:MOST_PARTITIONS]
    consumer = cluster.consumer(
        group_id=group_id,
        enable_auto_commit=False,
        enable_partition_eof=True,
        isolation_level="read_committed",
        auto_offset_reset="error",
    )
    try:
        return [value for ordinal in filled for value in _values(consumer, topics, ordinal, extents[ordinal], ends[ordinal])]
    finally:
        consumer.close()


def _values(consumer: Consumer, topics: Topics, ordinal: int, extent: Extent, end: int) -> list[bytes | None]:
    """Fetch values of one partition. Waits for the broker only, not for new records: some exist unless their transaction was
    aborted.
    """
    from confluent_kafka import TopicPartition

    begin = extent.start if extent.start < end else max(extent.first, end - MOST_RECORDS)
    place = TopicPartition(*topics.at(ordinal), begin)
    consumer.assign([place])
    values: list[bytes | None] = []
    until = monotonic() + REPLY_SECONDS
    while len(values) < MOST_RECORDS and monotonic() < until:
        messages = consumer.consume(MOST_RECORDS - len(values), 0.1)
        values += [message.value() for message in messages if message.error() is None]
        if any(message.error() is not None for message in messages):
            break  # the end; the reader will report any error of the partition
    consumer.unassign()
    return values
