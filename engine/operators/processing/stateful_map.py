"""The operator `stateful_map`: a user's function per record with a state per key.

In this loop a user's Python runs once per record: everything around the call is done per batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from operator import is_not
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ...columns import UNKNOWN, Columns
from ...context import Context
from ...errors import RecordError
from ...functions.error_policy import ErrorPolicy, OnError, Refused, function_name
from ...functions.rows_encoder import RowsEncoder
from ...functions.state_migration import MigrateState, object_migration, object_version
from ...functions.state_types import described_type
from ...keyed_state.kinds.objects import StateObjects
from ...keyed_state.kinds.state_check import StateCheck, unsaveable
from ...keys.encoding import key_values
from ...protocol.read_value import ReadValue
from ...state_description import StateDescription, columns_text
from ...state_version import StateVersion
from ...typed_rows.field_types import UnfitError
from ...typed_rows.objects import iterate_objects
from ...typed_rows.row_type import RowType
from ...typed_states.suggestion import annotation_for
from ...typed_states.value_types import NEWEST, ValueType
from ..function import FunctionOperator
from ..keyed import KeyedOperator
from .saved_objects import ObjectsReader
from .stateful import StatefulInstance

StatefulFunction = Callable[[Any, dict[str, Any]], tuple[Any, Any]]
"""`function(state, row) -> (state, row or None)`; the state is None for a new key, and returning None forgets the key."""


Places = npt.NDArray[np.intp]
"""Places of rows in a batch, ascending."""


@dataclass(frozen=True, eq=False)
class StatefulMap(FunctionOperator, KeyedOperator):
    """An operator that calls a function for each row in arrival order; a result has its row's event time.

    `rows`: the class of the function's rows, None for dicts; `declared`: the declared type of its states. `migrate` converts the states
    that older versions of the code wrote; `version`: that of this code.
    """

    keys: tuple[str, ...]
    function: StatefulFunction
    schema: pa.Schema | None = None
    on_error: OnError = "stop"
    rows: RowType | None = None
    declared: ValueType | None = None
    version: int = 1
    migrate: MigrateState | None = None

    takes_updates = True
    readable: ClassVar[bool] = True

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return UNKNOWN if self.schema is None else Columns.of(self.schema)

    def state_description(self) -> StateDescription:
        return described_type("a stateful_map", {"keys": columns_text(self.keys)}, self.declared, self.state_version())

    def state_version(self) -> StateVersion:
        """Return the version of the states."""
        return object_version(self.function, self.version, self.migrate)

    def open(self, context: Context) -> StatefulMapInstance:
        return StatefulMapInstance(self, context)

    def reader(self) -> ObjectsReader:
        return ObjectsReader(self.keys, replace(self.state_version(), migrates=False))

    def describe(self) -> str:
        return f"{getattr(self.function, '__qualname__', 'function')} by {', '.join(self.keys)}"


class StatefulMapInstance(StatefulInstance):
    """An instance whose state is a Python object per key."""

    def __init__(self, operator: StatefulMap, context: Context) -> None:
        self.function, self.rows = operator.function, operator.rows
        self.errors = ErrorPolicy(context.name, operator.on_error, keyed=True)
        self.encoder = RowsEncoder(context.name, operator.schema, function=function_name(operator.function))
        self.check = StateCheck(each=not self.errors.stops)
        self.declared = operator.declared
        migration = object_migration(operator.state_version(), operator.migrate, self.declared)
        undoable = not self.errors.stops
        states = StateObjects(context, operator.keys, undoable=undoable, declared=self.declared, migration=migration)
        super().__init__(context, operator.keys, states)

    def read(self, key: Sequence[pa.Array]) -> ReadValue | None:
        (value,) = key_values(key)
        state = self.state.looked_up([value]).get(value)
        if state is None:
            return None
        return ReadValue.of_object(state if self.declared is None else self.declared.plain(state))

    def attempt(self, batch: Batch) -> list[Batch]:
        states = self.state.read(batch.rows)
        results, places, added = self._call(batch, states)
        wrong = self.check.foreign(batch.num_rows, lambda start, length: self._keys(batch.slice(start, length)), states)
        if wrong is not None:
            keys = self._keys(batch)
            last = len(keys) - 1 - keys[::-1].index(wrong)
            raise Refused(last, self._unsaveable(states[wrong]), key=wrong)
        rows = self._encode(results, places, batch)
        self.state.written(added)
        if rows is None:
            return []
        times = batch.times
        return [Batch(rows, times if times is None or places is None else times[places])]

    def _encode(self, results: list[Any], places: Places | None, batch: Batch) -> pa.RecordBatch | None:
        try:
            return self.encoder.encode(results, batch.rows.schema) if results else None
        except RecordError:
            place, error = self.encoder.first_misfit(results, batch.rows.schema)
            at = place if places is None else int(places[place])
            raise Refused(at, error, key=self._keys(batch.slice(at, 1))[0]) from error

    def _keys(self, batch: Batch) -> list[Any]:
        return key_values(self.key_columns(batch.rows))

    def _call(self, batch: Batch, states: dict[Any, Any]) -> tuple[list[Any], Places | None, int]:
        """Return the results that are not None, the places of their rows (None for all), and the number of new keys."""
        function, get = self.function, states.get
        results: list[Any] = []
        keys = chain.from_iterable(map(self._keys, batch.pieces()))
        before, forgotten = len(states), 0
        key: Any = None
        kind: type | None = None
        returned: Any = (None, None)
        try:
            for key, row in zip(keys, iterate_objects(batch, self.rows, self.context.name), strict=True):
                returned = function(get(key), row)
                if type(returned) is not tuple:  # a dict, a string or a set of two could be unpacked too
                    raise self._misshapen(returned)  # noqa: TRY301 -- as any other error of the function
                state, result = returned
                if type(state) is kind:
                    states[key] = state
                elif state is None:
                    forgotten += states.pop(key, None) is not None
                else:
                    kind = self._checked_type(state)
                    states[key] = state
                results.append(result)
        except BaseException as caught:
            error = self._misshapen(returned) if type(returned) is tuple and len(returned) != 2 else caught
            raise Refused(len(results), error, None if isinstance(error, RecordError) else function, key) from caught
        rows = [result for result in results if result is not None]
        places = None if len(rows) == len(results) else np.flatnonzero(np.fromiter(map(is_not, results, repeat(None)), np.bool_))
        return rows, places, len(states) - before + forgotten

    def _checked_type(self, state: Any) -> type | None:
        """Return the type of a state, None if each state of it must be checked. Raises RecordError if it can't be saved."""
        if self.declared is not None:
            try:
                self.declared.plain(state, NEWEST if self.errors.stops else None)
            except UnfitError as error:
                problem = f"{function_name(self.function)}: the state is declared as {self.declared.name}: {error}"
                raise RecordError(self.context.name, problem) from error
            return None
        if not self.check.accepts(state):
            raise self._unsaveable(state)
        return None if self.check.must_see(type(state)) else type(state)

    def _unsaveable(self, state: Any) -> RecordError:
        annotation = annotation_for(state)
        declared = None if annotation is None else f"stateful_map({function_name(self.function)}, state={annotation})"
        return RecordError(self.context.name, f"{function_name(self.function)}: {unsaveable(state, declaration=declared)}")

    def _misshapen(self, returned: Any) -> RecordError:
        problem = (
            f"{function_name(self.function)} returned {returned!r:.200} ({type(returned).__name__}): "
            "return a tuple (state, row), with None as row for no row, and None as state to forget the key"
        )
        return RecordError(self.context.name, problem)
