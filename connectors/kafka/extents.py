"""Where reading begins and ends in each partition, settled once when the job starts: later, "latest" and times would mean other offsets.

>>> from datetime import datetime, UTC
>>> milliseconds(datetime(1970, 1, 1, 0, 0, 1))
1000
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from ...engine.errors import ConnectorError, FlowError
from .offsets import Offsets
from .reading import Extent
from .topics import Topics

Places: TypeAlias = "Mapping[int, int] | Mapping[tuple[str, int], int]"
"""Offsets by partition, or by topic and partition."""

Start: TypeAlias = "Literal['earliest', 'latest'] | datetime | Places"
Until: TypeAlias = "Literal['now'] | datetime | Places | None"


def milliseconds(time: datetime) -> int:
    """Since 1970; a time without a zone is UTC."""
    return round((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)


def check_bound(bound: Start | Until, words: Sequence[str | None], what: str, topics: Topics, operator: str) -> dict[int, int] | None:
    """The offsets by ordinal, None if `bound` isn't a mapping. Raises FlowError for what can't be a bound, beside `words`."""
    if isinstance(bound, datetime) or bound is None or isinstance(bound, str):
        if not isinstance(bound, datetime) and bound not in words:
            raise FlowError(f"operator `{operator}`: {what}={bound!r}; expected {_expected(words)}")
        return None
    if not isinstance(bound, Mapping):
        raise FlowError(f"operator `{operator}`: {what}={bound!r}; expected {_expected(words)}")
    return {_ordinal(place, what, topics, operator): _offset(offset, what, operator) for place, offset in bound.items()}


def extents(ordinals: Sequence[int], start: Start, until: Until, topics: Topics, offsets: Offsets, operator: str) -> dict[int, Extent]:
    """What is to be read of each partition. Raises ConnectorError for a partition or an offset that isn't there."""
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
    """Where there is nothing as new, reading begins or stops at the end, and not behind a transaction that is open."""
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
