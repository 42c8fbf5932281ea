"""The operator `process`: a user's `KeyedFunction` with states and timers per key. `co_process` builds on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ....state.packing import first_foreign
from ...batch import Batch
from ...columns import UNKNOWN, Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...functions.error_policy import ErrorPolicy, OnError, Refused
from ...functions.function_class import close_object, open_object
from ...functions.keyed_function import KeyContext, TimedFunction, TimeDomain
from ...functions.rows_encoder import RowsEncoder
from ...functions.state_migration import migration_of, version_of
from ...functions.state_types import declaration, described, value_types
from ...keyed_state.kinds.key_record import KeyRecord
from ...keyed_state.kinds.migration import Migration
from ...keyed_state.kinds.records import AT_ONCE, StateRecords
from ...keyed_state.kinds.state_check import StateCheck, unsaveable
from ...keys.encoding import key_values
from ...protocol.elements import MAX_TIME, MIN_TIME
from ...protocol.read_value import ReadValue
from ...state_description import StateDescription, columns_text
from ...time.datetimes import as_datetime
from ...typed_rows.field_types import UnfitError
from ...typed_rows.objects import iterate_objects
from ...typed_rows.row_type import RowType
from ..function import FunctionOperator
from ..keyed import KeyedOperator
from .saved_objects import RecordsReader
from .stateful import StatefulInstance

MOST_AT_END = 100_000
"""The most timers of one key that fire at the end of the stream; a function that sets more would set them forever."""


@dataclass(frozen=True, eq=False)
class Process(FunctionOperator, KeyedOperator):
    """An operator that calls a `KeyedFunction`: rows in arrival order, timers by their time.

    `rows`: the class of the rows that `on_row` gets, None for dicts. Rows from `on_row` have the input row's event time, rows
    from `on_timer` the timer's; those of a processing-time timer that of the call that set it. Processing-time timers that are due
    fire before the next batch.
    """

    keys: tuple[str, ...]
    function: TimedFunction
    schema: pa.Schema | None = None
    on_error: OnError = "stop"
    rows: RowType | None = None

    ticks = True
    takes_updates = True
    readable: ClassVar[bool] = True

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return UNKNOWN if self.schema is None else Columns.of(self.schema)

    def state_description(self) -> StateDescription:
        return described("a process", {"keys": columns_text(self.keys)}, type(self.function))

    def open(self, context: Context) -> ProcessInstance:
        return ProcessInstance(self, context)

    def records(self, context: Context, migration: Migration) -> StateRecords:
        """Create the state of an instance."""
        types = value_types(type(self.function))
        return StateRecords(context, self.keys, self.function.lives(), types, undoable=self.on_error != "stop", migration=migration)

    def reader(self) -> RecordsReader:
        version = replace(version_of(type(self.function)), migrates=False)
        return RecordsReader(self.keys, self.function.declared_states(), self.function.lives(), version)

    def describe(self) -> str:
        return f"{type(self.function).__name__} by {', '.join(self.keys)}"


class ProcessInstance(StatefulInstance):
    """An instance whose state is a record per key, with the states that the function declares and the timers that it has set."""

    state: StateRecords

    def __init__(self, operator: Process, context: Context) -> None:
        self.function = copy(operator.function)  # instances in one process must not share what a function keeps in `self`
        self.rows = operator.rows
        self.errors = ErrorPolicy(context.name, operator.on_error, keyed=True)
        self.encoder = RowsEncoder(context.name, operator.schema, function=type(operator.function).__name__)
        self.check = StateCheck(each=not self.errors.stops)
        super().__init__(context, operator.keys, operator.records(context, migration_of(self.function)))
        self.watermark = MIN_TIME
        self._context = KeyContext(self.state.timers, self.state.processing_timers, context.now)
        self._results: list[Any] = []
        self._times: list[int | None] = []
        open_object(self.function, self.function_context())

    def close(self) -> None:
        close_object(self.function, self.context.name)
        super().close()

    def read(self, key: Sequence[pa.Array]) -> ReadValue | None:
        (value,) = key_values(key)
        record = self.state.looked_up([value]).get(value)
        values = {} if record is None else self.state.plain(self.state.unexpired(record, self.watermark))
        return ReadValue.of_object(values) if values else None

    def method_for(self, batch: Batch) -> str:
        """Return the function's method for the rows of a batch."""
        return "on_row"

    def process(self, batch: Batch, emit: Emit) -> None:
        self.tick(emit)
        self.state.timed = self.state.timed or batch.times is not None
        super().process(batch, emit)

    def attempt(self, batch: Batch) -> list[Batch]:
        self._results, self._times = [], []
        places: list[int] = []
        touched: list[KeyRecord] = []
        states = self.state.read(batch.rows)
        keys = chain.from_iterable(key_values(self.key_columns(piece.rows)) for piece in batch.pieces())
        times: Iterable[int | None] = repeat(None, batch.num_rows) if batch.times is None else batch.times.tolist()
        place, key, before, forgotten = 0, None, len(states), 0
        self._context.advance(self.watermark)
        method = self.method_for(batch)
        on_row, settle = getattr(self.function, method), self.state.settle
        given = self.given(batch)
        checks = not self.errors.stops
        try:
            rows = iterate_objects(given, self.rows, self.context.name)
            for place, key, row, time in zip(range(batch.num_rows), keys, rows, times, strict=True):
                record = states.get(key)
                if record is None:
                    record = KeyRecord()
                self._bind(key, record, time)
                self._keep(on_row(key, row, self._context), time, method)
                if checks:
                    self._check_record(record)
                forgotten += settle(states, key, record)
                touched.append(record)
                if len(self._results) > len(places):
                    places += repeat(place, len(self._results) - len(places))
        except BaseException as error:
            self._results, self._times = [], []
            raise Refused(place, error, self._method(method), key) from error
        self._check(touched, batch)
        try:
            results = self._taken(given.rows.schema)
        except RecordError:
            found, problem = self.encoder.first_misfit(self._results, given.rows.schema)
            self._results, self._times = [], []
            row = batch.slice(places[found], 1).rows
            raise Refused(places[found], problem, key=key_values(self.key_columns(row))[0]) from problem
        self.state.written(len(states) - before + forgotten)
        return results

    def advance(self, watermark: int, emit: Emit) -> None:
        self._context.advance(watermark)
        if watermark == MAX_TIME and self.state.timed:
            self._end(emit)
        else:
            self._fire_due("event", watermark, emit)
        self.state.expire(watermark)
        self.state.forget_void()
        self.watermark = watermark

    def tick(self, emit: Emit) -> None:
        if self.state.processing_timers:
            self._fire_due("processing", self.context.now(), emit)
            self.state.forget_void()

    def finish(self, emit: Emit) -> None:
        self._end(emit)  # of a stream without event time, whose watermark may be the last one from the beginning

    def _end(self, emit: Emit) -> None:
        """Fire all timers: the stream has ended."""
        self._context.end()
        fired: dict[Any, int] = {}
        while self.state.timers or self.state.processing_timers:
            self._fire_due("event", MAX_TIME, emit, fired)
            self._fire_due("processing", MAX_TIME, emit, fired)

    def _fire_due(self, domain: TimeDomain, until: int, emit: Emit, fired: dict[Any, int] | None = None) -> None:
        """Fire the timers of a domain up to `until`. `fired`: how many of each key have fired since the stream ended."""
        timers = self.state.timers if domain == "event" else self.state.processing_timers
        while keys := timers.due(until, AT_ONCE):
            states = self.state.read_keys(keys)
            before, forgotten, loaded, leaving = len(states), 0, frozenset(keys), self.state.leaving(keys)
            while (due := timers.pop(until, loaded)) is not None:
                if due[1] not in leaving:
                    forgotten += self._fire(domain, states, *due, emit)
                if fired is not None:
                    self._count(fired, due[1])
            self.state.written(len(states) - before + forgotten)
            for results in self._taken():
                emit(results)

    def _bind(self, key: Any, record: KeyRecord, time: int | None, domain: TimeDomain | None = None) -> None:
        self.function.current = record, time
        self._context.bind(key, record, time, domain)

    def _fire(self, domain: TimeDomain, states: dict[Any, Any], at: int, key: Any, emit: Emit) -> bool:
        """Call `on_timer` if the timer is still set. Return True if its key was forgotten."""
        record = states.get(key)
        if record is None or at not in (record.timers if domain == "event" else record.processing_timers):
            return False
        if domain == "event":
            record.timers.discard(at)
            set_at: int | None = at
        else:
            set_at = record.processing_timers.pop(at)
        time = None if set_at is None else max(set_at, self.watermark)
        unfired = None if self.errors.stops else self.state.copied(key, record)
        self._bind(key, record, at if domain == "event" else time, domain)
        try:
            self._keep(self.function.on_timer(key, as_datetime(at), self._context), time, "on_timer")
            self._check_record(record)
            fired = [] if unfired is None else self._taken()
        except BaseException as error:  # noqa: BLE001 -- a user's function may raise anything
            function = None if isinstance(error, RecordError) else self._method("on_timer")
            record = unfired if unfired is not None else record
            self.errors.note(Refused(0, error, function, key), self._timer(at), time, emit)
            self._results, self._times = [], []
        else:
            for results in fired:
                emit(results)
        return self.state.settle(states, key, record)

    def _check(self, touched: list[KeyRecord], batch: Batch) -> None:
        """Raise Refused if a state that was written can't be saved; not every state is checked."""
        places = [self.check.foreign_values([self.state.undeclared(record.values) for record in touched])]
        if self.state.value_types:
            places += self.check.some_of(touched)
        for place in places:
            if place is not None:
                try:
                    self._check_record(touched[place])
                except RecordError as error:
                    self._results, self._times = [], []
                    key = key_values(self.key_columns(batch.slice(place, 1).rows))[0]
                    raise Refused(place, error, key=key) from error

    def _check_record(self, record: KeyRecord) -> None:
        """Raise RecordError for a record with a state that can't be saved."""
        name = type(self.function).__name__
        try:
            self.state.plain(record.values)
        except UnfitError as error:
            raise RecordError(self.context.name, f"{name}: {error}") from error
        values = self.state.undeclared(record.values)
        if first_foreign([values]) is not None:
            state, value = next((item for item in values.items() if first_foreign([item[1]]) is not None), ("states", values))
            wanted = declaration(type(self.function), state, value)
            raise RecordError(self.context.name, f"{name}: {unsaveable(value, f'self.{state}', wanted)}")

    def _timer(self, at: int) -> Any:
        """Return a refused timer as a record for its dead letter."""
        return f"the timer at {as_datetime(at).isoformat()}" if self.errors.stops else {"timer": as_datetime(at)}

    def _count(self, fired: dict[Any, int], key: Any) -> None:
        """Raise RecordError for a key whose timers set one another forever."""
        fired[key] = fired.get(key, 0) + 1
        if fired[key] > MOST_AT_END:
            problem = f"more than {MOST_AT_END:,} timers of one key have fired since the stream ended, each set by one before it"
            raise RecordError(self.context.name, f"{problem}: set none when context.ended is true", key=key)

    def _keep(self, rows: Iterable[Any] | None, time: int | None, method: str) -> None:
        if rows is not None:
            if isinstance(rows, (dict, str, bytes)) or not isinstance(rows, Iterable):
                problem = f"{type(self.function).__name__}.{method} returned {rows!r:.200}: yield rows, or return a list of them"
                raise RecordError(self.context.name, problem)
            self._results += rows
            self._times += repeat(time, len(self._results) - len(self._times))

    def _taken(self, like: pa.Schema | None = None) -> list[Batch]:
        """Return the rows that the function yielded, as a batch; `like`: the schema of the rows that it got.

        Raises RecordError for a value that fits no column type.
        """
        if not self._results:
            return []
        rows, times = self.encoder.encode(self._results, like), self._times
        self._results, self._times = [], []
        return [Batch(rows, None if times[0] is None else np.array(times, np.int64))]

    def _method(self, name: str) -> Any:
        return getattr(type(self.function), name)
