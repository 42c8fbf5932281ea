"""`stateful_map`: a user's function per record with a state per key.

This is the loop where a user's Python runs once a record: everything around the call is done per batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from ...state.members import GroupMembers
from ...state.packing import pack_values, unpack_value
from ..batch import Batch
from ..errors import RecordError
from ..keys import KeyTypes, key_groups, key_hashes, key_values
from ..routing import Move
from ..rows import RowsEncoder
from .base import Context, Emit
from .frozen_states import FrozenStates
from .keyed import Departing, KeyedOperator
from .user_function import refuse

STATE = "__state"

StatefulFunction = Callable[[Any, dict[str, Any]], tuple[Any, Any]]
"""`function(state, row) -> (state, row or None)`; the state is None for a new key, and returning None forgets the key."""


class StatefulMap(KeyedOperator):
    """Rows come in arrival order; a result has its row's event time."""

    def __init__(self, keys: tuple[str, ...], function: StatefulFunction, schema: pa.Schema | None = None) -> None:
        self.keys, self.function, self.schema = keys, function, schema

    def open(self, context: Context) -> None:
        super().open(context)
        self.encoder = RowsEncoder(context.name, self.schema)
        self.states: dict[Any, Any] = {}
        self.key_types = KeyTypes()
        self.members = GroupMembers(context.key_groups)
        self.frozen: FrozenStates | None = None

    def process(self, batch: Batch, emit: Emit) -> None:
        self.note_rows(batch.rows)
        self.key_types.learn(self.key_columns(batch.rows))
        if self.frozen is not None:
            self.frozen.before(set(key_values(self.key_columns(batch.rows))))
        results, places = self._call(batch)
        if results:
            times = None if batch.times is None else batch.times[np.array(places, np.int64)]
            emit(Batch(self.encoder.encode(results), times))

    def _call(self, batch: Batch) -> tuple[list[Any], list[int]]:
        """The results that are not None, and the places of their rows."""
        function, states = self.function, self.states
        get = states.get
        results: list[Any] = []
        places: list[int] = []
        keys = chain.from_iterable(key_values(self.key_columns(piece.rows)) for piece in batch.pieces())
        place, key, before, forgotten = 0, None, len(states), 0
        try:
            for place, key, row in zip(range(batch.num_rows), keys, batch.iterate_rows(), strict=True):
                state, result = function(get(key), row)
                if state is None:
                    forgotten += states.pop(key, None) is not None
                else:
                    states[key] = state
                if result is not None:
                    results.append(result)
                    places.append(place)
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            refuse(self.context.name, function, error, key=key, record=batch.slice(place, 1).to_rows()[0])
        self._index(len(states) - before + forgotten)
        return results, places

    def _index(self, added: int) -> None:
        """Note the groups of the last `added` keys of the dict: those that are new since the batch began."""
        if added:
            keys = list(islice(reversed(self.states), added))
            groups = key_groups(self.key_types.columns(keys), self.context.key_groups, self.context.name)
            self.members.add(keys, groups.tolist(), self.states)

    def depart(self, move: Move) -> Departing:
        return _DepartingStates(self, move)

    def install(self, state: Batch) -> None:
        columns = self.key_columns(state.rows)
        self.key_types.learn(columns)
        before = len(self.states)
        self.states.update(zip(key_values(columns), map(unpack_value, state.rows.column(STATE).to_pylist()), strict=True))
        self._index(len(self.states) - before)

    def snapshot(self) -> Iterator[Batch]:
        self.frozen = FrozenStates(self.states, self.members, self.context.key_groups, self.packed)
        return self._thawing(self.frozen)

    def packed(self, states: Mapping[Any, Any]) -> Batch:
        """States as a batch: key columns and the packed state of each. Raises RecordError naming the key of one that can't be packed."""
        packed: list[bytes] = []
        try:
            packed.extend(pack_values(states.values()))
        except (TypeError, ValueError, OverflowError) as error:
            key, state = list(states.items())[len(packed)]
            made_of = "None, bool, int, float, str, bytes, lists, tuples and dicts"
            problem = f"the state can't be moved or saved: it must be made of {made_of} ({error})"
            raise RecordError(self.context.name, problem, key=key, record=state) from error
        columns = [*self.key_types.columns(list(states)), pa.array(packed, pa.binary())]
        return Batch(pa.RecordBatch.from_arrays(columns, names=[*self.keys, STATE]))

    def _thawing(self, frozen: FrozenStates) -> Iterator[Batch]:
        yield from frozen
        self.frozen = None

    def state_bytes(self) -> int:
        return 200 * len(self.states)

    def describe(self) -> str:
        return f"{getattr(self.function, '__qualname__', 'function')} by {', '.join(self.keys)}"


class _DepartingStates(Departing):
    """States leave the dict as they are taken; keys are looked up a group at a time, so that no batch waits for a list of all of them."""

    def __init__(self, operator: StatefulMap, move: Move) -> None:
        self._operator, self._move = operator, move
        key_groups = operator.context.key_groups
        self._whole = frozenset() if move.staying else frozenset(move.groups)
        self._groups = sorted({*move.groups, *(key % key_groups for key in move.keys)}, reverse=True)
        self._left: list[Any] = []

    def some(self, keys: int) -> Batch | None:
        while self._left or self._groups:
            while len(self._left) < keys and self._groups:
                self._left += self._keys_of(self._groups.pop())
            taken, self._left = self._left[:keys], self._left[keys:]
            batch = self._take(taken)
            if batch is not None:
                return batch
        return None

    def of(self, columns: Sequence[pa.Array]) -> Batch | None:
        return self._take(key_values(columns))

    def _keys_of(self, group: int) -> list[Any]:
        """The keys of a group that move."""
        operator = self._operator
        keys = [key for key in operator.members.of(group) if key in operator.states]
        if group in self._whole or not keys:
            return keys
        hashes = key_hashes(operator.key_types.columns(keys), operator.context.name)
        return [keys[place] for place in np.flatnonzero(self._move.selects(hashes, operator.context.key_groups)).tolist()]

    def _take(self, keys: list[Any]) -> Batch | None:
        operator = self._operator
        found = {key: operator.states.pop(key) for key in keys if key in operator.states}
        if not found:
            return None
        return operator.packed(found)
