"""The record of one key of a `KeyedFunction`: the values of its states, the times of their last writes, and its timers.

Packed records without processing-time timers are as older versions wrote them, and theirs can be read.

>>> record = KeyRecord()
>>> record.values["seen"] = (1, 2)
>>> record.timers.add(60)
>>> unpack_records(list(pack_records([record]))) == [record], bool(KeyRecord())
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....state.packing import pack_values, unpack_values


@dataclass(slots=True)
class KeyRecord:
    """The record of a key; equivalent to no record if it has no values and timers. Times are in microseconds.

    `values` by the state's name; `written`: the event time of the last write, for states with a time to live; `timers`: the times
    of its event-time timers; `processing_timers`: those of its processing-time timers, each with the event time of the call that
    set it, None without event time.
    """

    values: dict[str, Any] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    timers: set[int] = field(default_factory=set)
    processing_timers: dict[int, int | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.values or self.timers or self.processing_timers)

    def ends(self, lives: dict[str, int]) -> list[tuple[str, int]]:
        """Return the name and the expiry of each value that has a time to live (`lives`, by name, in microseconds)."""
        return [(name, time + lives[name]) for name, time in self.written.items() if name in lives]

    def expire(self, lives: dict[str, int], now: int) -> None:
        """Forget the values that have expired at `now`."""
        for name in [name for name, end in self.ends(lives) if end <= now]:
            del self.written[name]
            self.values.pop(name, None)


def pack_records(records: Iterable[KeyRecord]) -> Iterator[bytes]:
    """Return records as bytes. Raises like `pack_values`, at the first record that can't be packed."""
    return pack_values(
        [record.values, record.written, sorted(record.timers), *([record.processing_timers] if record.processing_timers else ())]
        for record in records
    )


def unpack_records(packed: Sequence[bytes]) -> list[KeyRecord]:
    """Return the records of packed bytes; the inverse of `pack_records`. Raises TypeError or ValueError for anything else."""
    records = []
    for values, written, timers, *rest in unpack_values(packed):
        if not isinstance(values, dict) or not isinstance(written, dict):
            raise TypeError(f"values {values!r:.50} and times {written!r:.50}, expected two dicts")
        records.append(KeyRecord(values, written, set(timers), *rest))
    return records
