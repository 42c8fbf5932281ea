"""The operator `pattern`: rows of a key that match the steps of a pattern, in the order of event time.

A row waits until the watermark has passed it, so that the rows of a key are matched in the order of their times, and those of one time
in the order of their arrival. Conditions that read the row alone are evaluated when it arrives, and kept with it as bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...batch import Batch, Times
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...expressions.evaluation import Condition, condition_problem
from ...expressions.expression import Expression
from ...functions.error_policy import function_name, refuse
from ...keyed_state.kinds.key_record import KeyRecord
from ...keyed_state.kinds.records import AT_ONCE, StateRecords
from ...keys.encoding import key_values
from ...patterns.kept_rows import RowBytes, without_dictionaries
from ...patterns.matched import Match, known_columns, matches_as_rows
from ...patterns.pattern import Pattern
from ...patterns.runs import Runs
from ...protocol.elements import MIN_TIME
from ...state_description import StateDescription, columns_text, seconds_text
from ...time.event_time import LATEST, shown_time
from ...typed_rows.objects import iterate_objects
from ...typed_rows.row_type import RowType
from ..keyed import KeyedInstance, KeyedOperator

MOST_ROWS = 200_000
"""The most rows in the partial matches of one key, a row counted in each; a pattern that needs more would fill the memory."""


@dataclass(frozen=True, eq=False)
class MatchPattern(KeyedOperator):
    """An operator that emits a row for each match of a pattern. `rows`: the class of the rows that conditions get, None for dicts."""

    keys: tuple[str, ...]
    pattern: Pattern
    rows: RowType | None = None

    checked_at_once = True

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        for step in self.pattern.steps:
            if isinstance(step.condition, Expression):
                problem = condition_problem(step.condition.tree, inputs[0])
                if problem is not None:
                    return f"step {step.name!r}: {problem}"
        return None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return known_columns(self.pattern, self.keys, inputs[0])

    def state_description(self) -> StateDescription:
        skip = self.pattern.skip if isinstance(self.pattern.skip, str) else " ".join(self.pattern.skip)
        traits = {
            "keys": columns_text(self.keys),
            "steps": "; ".join(step.traits() for step in self.pattern.steps),
            "within": seconds_text(self.pattern.within),
            "skip": skip,
        }
        return StateDescription("a pattern", traits)

    def open(self, context: Context) -> MatchPatternInstance:
        return MatchPatternInstance(self, context)

    def describe(self) -> str:
        return f"{self.pattern.describe()}, by {', '.join(self.keys)}"


class MatchPatternInstance(KeyedInstance):
    """An instance whose state is a record per key: the rows that wait, the partial matches, and a timer for the next change.

    A record's values: `schema`, that of its rows; `waiting`, `[time, bits, row]` in the order of arrival; `next`, the number of the next
    row; `rows`, `[time, bits, row]` by number, of those in partial matches; `runs` and `held`, as in `Runs`.
    """

    state: StateRecords

    def __init__(self, operator: MatchPattern, context: Context) -> None:
        super().__init__(context, operator.keys, StateRecords(context, operator.keys, {}, {}, undoable=False))
        self.pattern, self.rows = operator.pattern, operator.rows
        self.bytes = RowBytes(context.name)
        self.watermark = MIN_TIME
        self._conditions = [
            Condition(step.condition.tree, context.name, f"step {step.name!r}: ") if isinstance(step.condition, Expression) else None
            for step in self.pattern.steps
        ]
        self._reads_matched = [step.reads_matched for step in self.pattern.steps]

    def process(self, batch: Batch, emit: Emit) -> None:
        self.note_rows(batch.rows)
        late = self._times(batch) < self.watermark
        if late.any():
            self.late_records += int(late.sum())
            emit(batch.filter(late), "late")
            batch = batch.filter(~late)
        if batch.num_rows:
            self._keep(batch)

    def advance(self, watermark: int, emit: Emit) -> None:
        self.watermark = watermark
        timers = self.state.timers
        while keys := timers.due(watermark, AT_ONCE):
            states = self.state.read_keys(keys)
            before, forgotten, loaded, leaving = len(states), 0, frozenset(keys), self.state.leaving(keys)
            found: dict[bytes, list[Match]] = {}
            while (due := timers.pop(watermark, loaded)) is not None:
                at, key = due
                record = states.get(key)
                if key not in leaving and record is not None and at in record.timers:
                    found.setdefault(record.values["schema"], []).extend(self._matched(key, record, watermark))
                    forgotten += self.state.settle(states, key, record)
            self.state.written(len(states) - before + forgotten)
            for schema, matches in found.items():
                if matches:
                    emit(matches_as_rows(matches, self.pattern, self.keys, self.state.types.columns, self.bytes, schema))
        self.state.forget_void()

    def _times(self, batch: Batch) -> Times:
        """Return the event times. Raises RecordError without them, and for a row whose `within` ends after the year 9999."""
        if batch.times is None:
            raise RecordError(self.context.name, "a pattern needs event time, and its stream has none: give the source event_time=")
        if (latest := int(batch.times.max())) > LATEST - self.pattern.within:
            problem = (
                f"a record of {shown_time(latest)} is less than `within` before the end of the year 9999: filter such records out before"
            )
            raise RecordError(self.context.name, problem, record=batch.slice(int(batch.times.argmax()), 1).to_rows()[0])
        return batch.times

    def _keep(self, batch: Batch) -> None:
        """Keep rows that are not late until the watermark has passed them."""
        assert batch.times is not None
        rows = without_dictionaries(batch.rows)
        schema = self.bytes.schema_of(rows)
        bits, packed = self._bits(batch), self.bytes.pack(rows)
        keys = [key for piece in batch.pieces() for key in key_values(self.key_columns(piece.rows))]
        states = self.state.read(batch.rows)
        before = len(states)
        for key, time, bit, row in zip(keys, batch.times.tolist(), bits.tolist(), packed, strict=True):
            record = states.get(key)
            if record is None:
                empty = {"schema": schema, "next": 0, "waiting": [], "rows": {}, "runs": [], "held": []}
                record = states[key] = KeyRecord(empty)
            if record.values["schema"] != schema:
                row = self._fitted(record, row, schema)  # noqa: PLW2901 -- the same row
            record.values["waiting"].append([time, bit, row])
            self._wake(key, record, time + 1)
        self.state.written(len(states) - before)

    def _fitted(self, record: KeyRecord, row: bytes, schema: bytes) -> bytes:
        """Give all rows of a record the types that hold the values of both schemas, and return the new row with these."""
        values, was = record.values, record.values["schema"]
        both = values["schema"] = self.bytes.joined(was, schema)
        if both != was:
            kept = [*values["waiting"], *values["rows"].values()]
            for each, converted in zip(kept, self.bytes.converted([each[2] for each in kept], was, both), strict=True):
                each[2] = converted
        return self.bytes.converted([row], schema, both)[0]

    def _bits(self, batch: Batch) -> npt.NDArray[np.int64]:
        """Return the conditions that hold for each row, as the bits of a number; those that read matched rows have none."""
        bits = np.zeros(batch.num_rows, np.int64)
        functions = [
            place for place, step in enumerate(self.pattern.steps) if self._conditions[place] is None and not self._reads_matched[place]
        ]
        for place, condition in enumerate(self._conditions):
            if condition is not None:
                bits |= condition.true_rows(batch).astype(np.int64) << place
        if functions:
            for number, row in enumerate(iterate_objects(batch, self.rows, self.context.name)):
                for place in functions:
                    if self._called(place, (row,), lambda number=number: batch.slice(number, 1).rows):
                        bits[number] |= 1 << place
        return bits

    def _called(self, place: int, arguments: tuple[Any, ...], rows: Any) -> bool:
        """Call the function of a step. Raises RecordError, with the row of `rows()`, if it raises or returns neither true nor false."""
        function: Any = self.pattern.steps[place].condition
        try:
            truth = function(*arguments)
            if isinstance(truth, (bool, np.bool_)):
                return bool(truth)
            problem = f"{function_name(function)} returned {truth!r:.200}: return True or False, for example with bool(...)"
            raise RecordError(self.context.name, f"step {self.pattern.steps[place].name!r}: {problem}")  # noqa: TRY301 -- gets key and row
        except BaseException as error:  # noqa: BLE001 -- a user's function may raise anything
            one = rows()
            key = key_values(self.key_columns(one))[0]
            refuse(self.context.name, function, error, key=key, record=Batch(one).to_rows()[0])

    def _matched(self, key: Any, record: KeyRecord, watermark: int) -> list[Match]:
        """Match the rows of a key that the watermark has passed, and return the matches."""
        values = record.values
        ripe = sorted((row for row in values["waiting"] if row[0] < watermark), key=_time)
        values["waiting"] = [row for row in values["waiting"] if row[0] >= watermark]
        rows: dict[int, list[Any]] = values["rows"]
        runs = Runs(self.pattern, values["runs"], values["held"], {number: row[0] for number, row in rows.items()}, self._holds(values))
        for row in ripe:
            number = values["next"]
            rows[number], values["next"] = row, number + 1
            runs.take(number, row[0])
            if runs.size > MOST_ROWS:
                self._refuse(key, row, values["schema"])
        runs.expire(watermark)
        matches = [self._match(key, path, places, at, rows) for path, places, at in runs.found]
        used = {number for path, *_ in (*runs.runs, *runs.held) for number in path}
        values["rows"] = {number: rows[number] for number in sorted(used)}
        values["runs"], values["held"] = runs.runs, runs.held
        record.timers.clear()
        wakes = [row[0] + 1 for row in values["waiting"]]
        expiry = runs.expiry
        if wakes or expiry is not None:
            self._wake(key, record, min([*wakes, *([] if expiry is None else [expiry])]))
        else:
            values.clear()  # nothing is left to remember of this key
        return matches

    def _holds(self, values: dict[str, Any]) -> Any:
        """Return the function that decides if a row meets a condition, for the rows of one key."""
        rows = values["rows"]

        @cache
        def given(number: int) -> Any:
            (row,) = iterate_objects(Batch(self.bytes.unpack(values["schema"], [rows[number][2]])), self.rows, self.context.name)
            return row

        def holds(step: int, row: int, path: Sequence[int], places: Sequence[int]) -> bool:
            if not self._reads_matched[step]:
                return bool(rows[row][1] >> step & 1)
            matched: dict[str, list[Any]] = {}
            for number, place in zip(path, places, strict=True):
                matched.setdefault(self.pattern.steps[self.pattern.present[place]].name, []).append(given(number))
            return self._called(step, (given(row), matched), lambda: self.bytes.unpack(values["schema"], [rows[row][2]]))

        return holds

    def _match(self, key: Any, path: Sequence[int], places: Sequence[int], at: int, rows: dict[int, list[Any]]) -> Match:
        steps: list[list[bytes]] = [[] for _ in self.pattern.present]
        for number, place in zip(path, places, strict=True):
            steps[place].append(rows[number][2])
        start, last = rows[path[0]][0], rows[path[-1]][0]
        return Match(key, steps, start, start + self.pattern.within if self.pattern.absent_after[-1] else last, at)

    def _wake(self, key: Any, record: KeyRecord, at: int) -> None:
        """Set the record's one timer, unless it is earlier."""
        if not record.timers or at < min(record.timers):
            record.timers.clear()
            record.timers.add(at)
            self.state.timers.add(at, key)

    def _refuse(self, key: Any, row: list[Any], schema: bytes) -> None:
        problem = (
            f"its partial matches hold more than {MOST_ROWS:,} rows within {seconds_text(self.pattern.within)}: make the conditions "
            'stricter, `within` shorter or the times of repeated steps fewer, or use "followed_by" for "followed_by_any"'
        )
        raise RecordError(self.context.name, problem, key=key, record=Batch(self.bytes.unpack(schema, [row[2]])).to_rows()[0])


def _time(row: list[Any]) -> int:
    time: int = row[0]
    return time
