"""Runs a `KeyedFunction` or a `CoKeyedFunction` row by row in plain Python: a record per key in a dict, and timers found by scanning all.

The clock stands still, so all processing-time timers fire at the end.
Before each row the watermark is as high as possible: the earliest time of the remaining rows. A function whose results depend on the
watermark's distance from that agrees with no oracle.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...engine.functions.keyed_function import KeyContext, TimedFunction, TimeDomain
from ...engine.keyed_state.kinds.key_record import KeyRecord
from ...engine.keyed_state.kinds.timers import Timers
from ...engine.protocol.elements import MAX_TIME
from ...engine.time.datetimes import as_datetime

Timed = tuple[Any, int | None]
"""A row, and its event time."""


Refuse = Callable[[Any, dict[str, Any], int | None, Exception], None]
"""Takes (key, row, event time, error) after the function has raised. It raises the error if the error policy stops the job."""


Call = tuple[str, Any, dict[str, Any], int | None]
"""A method's name, the key, the row, and its event time."""


def processed(
    function: TimedFunction, calls: Sequence[Call], refuse: Refuse, broadcast: Mapping[Any, Mapping[str, Any]] | None = None
) -> list[Timed]:
    """Return the results of `function` for these calls, and for its timers; `broadcast`: the rows that it reads at any time."""
    plain = _Plain(copy.copy(function), refuse)
    if broadcast is not None:
        plain.context.read_broadcast(broadcast)
    results: list[Timed] = []
    for (method, key, row, time), watermark in zip(calls, _watermarks([call[-1] for call in calls]), strict=True):
        results += plain.fired(watermark)
        results += plain.called(key, row, time, partial(getattr(plain.function, method), key, dict(row)))
    return [*results, *plain.ended()]


class _Plain:
    """The function and its keys' records."""

    def __init__(self, function: TimedFunction, refuse: Refuse) -> None:
        self.function, self._refuse = function, refuse
        self.context = KeyContext(Timers(), Timers(), int)
        self._records: dict[Any, KeyRecord] = {}

    def called(
        self, key: Any, row: dict[str, Any], time: int | None, call: Callable[[KeyContext], Any], domain: TimeDomain | None = None
    ) -> list[Timed]:
        """Return the results of a call for `row`; if it raises, the key's record is unchanged."""
        record = self._records.setdefault(key, KeyRecord())
        before = copy.deepcopy(record)
        self.function.current = record, time
        self.context.bind(key, record, time, domain)
        try:
            return [(result, time) for result in call(self.context) or ()]
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            self._records[key] = before
            self._refuse(key, row, time, error)
            return []

    def fired(self, watermark: int) -> Iterator[Timed]:
        """Yield the results of the timers that the watermark has passed, the earliest first."""
        self.context.advance(watermark)
        while due := [(min(record.timers), place, key) for place, (key, record) in enumerate(self._records.items()) if record.timers]:
            at, _, key = min(due, key=lambda entry: entry[:2])
            if at > watermark:
                return
            self._records[key].timers.discard(at)
            time = as_datetime(at)
            yield from self.called(key, {"timer": time}, at, partial(self.function.on_timer, key, time), "event")

    def ended(self) -> Iterator[Timed]:
        """Yield the results of all timers that are left."""
        self.context.end()
        yield from self.fired(MAX_TIME)
        while found := [(key, record) for key, record in self._records.items() if record.processing_timers]:
            key, record = found[0]
            at = min(record.processing_timers)
            set_at, time = record.processing_timers.pop(at), as_datetime(at)
            yield from self.called(key, {"timer": time}, set_at, partial(self.function.on_timer, key, time), "processing")
            yield from self.fired(MAX_TIME)


def _watermarks(times: Sequence[int | None]) -> list[int]:
    """Yield the watermark before each row: the earliest time of that row and the later ones."""
    watermarks, earliest = [], MAX_TIME
    for time in reversed(times):
        earliest = min(earliest, time if time is not None else earliest)
        watermarks.append(earliest)
    return watermarks[::-1]
