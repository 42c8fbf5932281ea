"""`process`: a user's `KeyedFunction` with states and timers per key.

A key's record (states and timers) lies in the state backend and travels with the key; which timers are due is an index in memory, made anew
from the records that arrive.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from ..batch import Batch
from ..elements import MAX_TIME, MIN_TIME
from ..errors import RecordError
from ..key_record import KeyRecord, pack_records, unpack_record
from ..keyed_function import KeyContext, KeyedFunction
from ..keys import key_values
from ..rows import RowsEncoder
from ..timers import Timers
from .base import Context, Emit
from .keyed_states import KeyedStates
from .refusals import OnError, Refused
from .with_states import WithStates

AT_ONCE = 1_024
"""Keys whose timers fire with one look at the backend."""

MOST_AT_END = 100_000
"""Timers of one key that fire at the end of the stream; a function that sets more sets them for ever."""


class Process(WithStates):
    """Rows come in arrival order, timers by their time; what `on_row` yields has the row's event time, and `on_timer`'s the timer's."""

    def __init__(self, keys: tuple[str, ...], function: KeyedFunction, schema: pa.Schema | None = None, on_error: OnError = "stop") -> None:
        self.keys, self.function, self.schema, self.on_error = keys, function, schema, on_error

    def open(self, context: Context) -> None:
        super().open(context)
        self.function = copy.copy(self.function)
        self.encoder = RowsEncoder(context.name, self.schema)
        self.states = KeyedStates(context, self.keys, pack_records, unpack_record, undoable=not self.refusals.stops, kind=b"records")
        self.timers, self.expiries = Timers(), Timers()
        self.watermark = MIN_TIME
        self._lives = self.function.lives()
        self._expiring: set[Any] = set()
        """Keys that are in `expiries`."""
        self._context = KeyContext(self.timers)
        self._results: list[Any] = []
        self._times: list[int | None] = []

    def attempt(self, batch: Batch) -> list[Batch]:
        self._results, self._times = [], []
        places: list[int] = []
        states = self.states.read(batch.rows)
        keys = chain.from_iterable(key_values(self.key_columns(piece.rows)) for piece in batch.pieces())
        times: Iterable[int | None] = repeat(None, batch.num_rows) if batch.times is None else batch.times.tolist()
        place, key, before, forgotten = 0, None, len(states), 0
        self._context.watermark = self.watermark
        on_row = self.function.on_row
        try:
            for place, key, row, time in zip(range(batch.num_rows), keys, batch.iterate_rows(), times, strict=True):
                record = states.get(key)
                if record is None:
                    record = KeyRecord()
                self._bind(key, record, time)
                self._keep(on_row(key, row, self._context), time, "on_row")
                forgotten += self._settle(states, key, record)
                if len(self._results) > len(places):
                    places += repeat(place, len(self._results) - len(places))
        except BaseException as error:
            self._results, self._times = [], []
            raise Refused(place, error, self._method("on_row"), key) from error
        try:
            results = self._taken()
        except RecordError:
            found, problem = self.encoder.first_misfit(self._results)
            self._results, self._times = [], []
            row = batch.slice(places[found], 1).rows
            raise Refused(places[found], problem, key=key_values(self.key_columns(row))[0]) from problem
        self.states.written(len(states) - before + forgotten)
        return results

    def advance(self, watermark: int, emit: Emit) -> None:
        self._context.watermark = watermark
        fired: dict[Any, int] | None = {} if watermark == MAX_TIME else None
        while keys := self.timers.due(watermark, AT_ONCE):
            states = self.states.read_keys(keys)
            before, forgotten, loaded, leaving = len(states), 0, frozenset(keys), self.states.leaving(keys)
            while (due := self.timers.pop(watermark, loaded)) is not None:
                if due[1] not in leaving:
                    forgotten += self._fire(states, *due, emit)
                if fired is not None:
                    self._count(fired, due[1])
            self.states.written(len(states) - before + forgotten)
            for results in self._taken():
                emit(results)
        self._expire(watermark)
        self._forget_void()
        self.watermark = watermark

    def install(self, state: Batch) -> None:
        keys = self.states.install(state)
        records = self.states.read_keys(keys)
        for key in keys:
            record = records.get(key)
            if record is not None:
                for time in sorted(record.timers):
                    self.timers.add(time, key)
                self._note_expiry(key, record)

    def describe(self) -> str:
        return f"{type(self.function).__name__} by {', '.join(self.keys)}"

    def _bind(self, key: Any, record: KeyRecord, time: int | None) -> None:
        """Make the key's record what the function works on."""
        self.function.current = record, time
        self._context.bind(key, record, time)

    def _settle(self, states: dict[Any, Any], key: Any, record: KeyRecord) -> bool:
        """Keep the record, or forget it if nothing is in it any more; whether it was forgotten."""
        if record:
            states[key] = record
            if record.written:
                self._note_expiry(key, record)
            return False
        return states.pop(key, None) is not None

    def _fire(self, states: dict[Any, Any], at: int, key: Any, emit: Emit) -> bool:
        """Call `on_timer` if the timer still stands; whether its key was forgotten."""
        record = states.get(key)
        if record is None or at not in record.timers:
            return False
        record.timers.discard(at)
        unfired, time = None if self.refusals.stops else self.states.copied(key, record), max(at, self.watermark)
        self._bind(key, record, at)
        try:
            self._keep(self.function.on_timer(key, at, self._context), time, "on_timer")
            fired = [] if unfired is None else self._taken()
        except BaseException as error:  # noqa: BLE001 -- a user's function may raise anything
            function = None if isinstance(error, RecordError) else self._method("on_timer")
            record = unfired if unfired is not None else record
            self.refusals.note(Refused(0, error, function, key), self._timer(at), time, emit)
            self._results, self._times = [], []
        else:
            for results in fired:
                emit(results)
        return self._settle(states, key, record)

    def _timer(self, at: int) -> Any:
        """A timer in place of the record that is refused."""
        return f"the timer at {at}" if self.refusals.stops else {"timer": at}

    def _count(self, fired: dict[Any, int], key: Any) -> None:
        """Raises RecordError for a key whose timers set one another for ever."""
        fired[key] = fired.get(key, 0) + 1
        if fired[key] > MOST_AT_END:
            problem = f"more than {MOST_AT_END:,} timers of one key have fired since the stream ended, each set by one before it"
            raise RecordError(self.context.name, f"{problem}: set none when context.ended is true", key=key)

    def _note_expiry(self, key: Any, record: KeyRecord) -> None:
        """Have the record looked at when the first of its values is over."""
        ends = record.ends(self._lives)
        if ends and key not in self._expiring:
            self._expiring.add(key)
            self.expiries.add(min(end for _, end in ends), key)

    def _expire(self, watermark: int) -> None:
        """Forget what no later row and no timer can see any more."""
        while keys := self.expiries.due(watermark, AT_ONCE):
            states = self.states.read_keys(keys)
            loaded, leaving = frozenset(keys), self.states.leaving(keys)
            while (due := self.expiries.pop(watermark, loaded)) is not None:
                key = due[1]
                self._expiring.discard(key)
                record = states.get(key)
                if record is not None and key not in leaving:
                    record.expire(self._lives, watermark)
                    self._settle(states, key, record)
            self.states.written(0)

    def _forget_void(self) -> None:
        """Once what is noted of timers and expiries may be mostly of timers that were unset and keys that are gone, forget that."""
        if self.timers.crowded:
            standing = {key: frozenset(record.timers) for key, record in self._records(self.timers.keys())}
            self.timers.retain(lambda at, key: at in standing.get(key, ()))
        if self.expiries.crowded:
            there = {key for key, record in self._records(self.expiries.keys()) if record.written}
            self.expiries.retain(lambda _, key: key in there)
            self._expiring = there

    def _records(self, keys: list[Any]) -> Iterator[tuple[Any, KeyRecord]]:
        """Those of the keys that have one, with it."""
        for some in (keys[first : first + AT_ONCE] for first in range(0, len(keys), AT_ONCE)):
            states = self.states.looked_up(some)
            yield from ((key, states[key]) for key in some if key in states)

    def _keep(self, rows: Iterable[Any] | None, time: int | None, method: str) -> None:
        if rows is not None:
            if isinstance(rows, (dict, str, bytes)) or not isinstance(rows, Iterable):
                problem = f"{type(self.function).__name__}.{method} returned {rows!r:.200}: yield rows, or return a list of them"
                raise RecordError(self.context.name, problem)
            self._results += rows
            self._times += repeat(time, len(self._results) - len(self._times))

    def _taken(self) -> list[Batch]:
        """What the function has yielded, to be emitted. Raises RecordError for what has no column's type."""
        if not self._results:
            return []
        rows, times = self.encoder.encode(self._results), self._times
        self._results, self._times = [], []
        return [Batch(rows, None if times[0] is None else np.array(times, np.int64))]

    def _method(self, name: str) -> Any:
        return getattr(type(self.function), name)
