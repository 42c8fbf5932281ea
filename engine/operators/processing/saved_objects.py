"""Tables of the saved states of users' functions: the state of a `stateful_map`, the declared states of a `process`.

Invariant: a column holds every value exactly, or it holds the values' texts, because no type holds them all.

>>> value_column([1, None, 2.5]).to_pylist(), value_column([1, None, "b"]).to_pylist()
([1.0, None, 2.5], ['1', None, "'b'"])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa

from ...broadcast_rows import is_broadcast
from ...functions.declared_states import MapState
from ...keyed_state.kinds.migration import Migration
from ...keyed_state.kinds.objects import StateObjects
from ...keyed_state.kinds.records import StateRecords
from ...keys.encoding import joined_keys
from ...state_description import PartsChange
from ...state_version import FIRST, StateVersion
from ...types.python_values import REFUSALS
from ...types.value_column import ValueColumn
from ..state_reader import SavedPart, StateReader, install, reading_context

Columns = Sequence[pa.Array]


@dataclass(frozen=True)
class ObjectsReader(StateReader):
    """Makes a table of states in one column, `state`. `version`: theirs."""

    keys: tuple[str, ...]
    version: StateVersion = FIRST

    def table(self, operator: str, parts: Iterable[SavedPart], change: PartsChange | None) -> pa.Table:
        pieces, states = list[Columns](), list[Any]()
        for part in parts:
            objects = StateObjects(reading_context(operator), self.keys, migration=Migration(self.version))
            install(objects, operator, part, change)
            keys, values = objects.everything()
            pieces.append(keys)
            states += values
        return _table(operator, self.keys, pieces, {"state": value_column(states)})


@dataclass(frozen=True)
class RecordsReader(StateReader):
    """Makes a table with a column for each state, null for a key without it. `states`: their kinds, `lives`: their times to live, by name.

    `version`: that of the states, with their former names. `shown`: the names of the key columns in the table, by default the state's.
    """

    keys: tuple[str, ...]
    states: Mapping[str, str]
    lives: Mapping[str, int]
    version: StateVersion = FIRST
    shown: tuple[str, ...] = ()

    def table(self, operator: str, parts: Iterable[SavedPart], change: PartsChange | None) -> pa.Table:
        pieces, found = list[Columns](), list[dict[str, Any]]()
        for part in parts:
            migration = Migration(self.version)
            state = StateRecords(reading_context(operator), self.keys, self.lives, {}, undoable=False, migration=migration)
            chunks = (chunk for chunk in part.chunks if not is_broadcast(chunk.rows.schema))
            install(state, operator, SavedPart(part.watermark, chunks), change)
            keys, records = state.everything()
            values = [state.unexpired(record, part.watermark) for record in records]
            some = np.array([bool(each) for each in values], np.bool_)
            pieces.append([column.filter(pa.array(some)) for column in keys])
            found += [each for each in values if each]
        columns = {name: self._column(kind, [each.get(name) for each in found]) for name, kind in self.states.items()}
        return _table(operator, self.shown or self.keys, pieces, columns)

    def _column(self, kind: str, values: list[Any]) -> pa.Array:
        return map_column(values) if kind == MapState.kind else value_column(values)


def value_column(values: list[Any]) -> pa.Array:
    """Return Python values as a column of a type that holds all of them exactly, or as texts if there is none."""
    try:
        return ValueColumn("state").encoded(values)
    except REFUSALS:
        return pa.array([None if value is None else repr(value) for value in values], pa.string())


def map_column(values: list[dict[Any, Any] | None]) -> pa.Array:
    """Return dicts as a column of maps, or as texts if no type holds all keys or all values.

    >>> map_column([{"a": 1}, None, {}]).to_pylist()
    [[('a', 1)], None, []]
    """
    maps = [each or {} for each in values]
    try:
        keys = ValueColumn("state").encoded(list(chain.from_iterable(maps)))
        items = ValueColumn("state").encoded(list(chain.from_iterable(each.values() for each in maps)))
        offsets = pa.array(list(accumulate(map(len, maps), initial=0)), pa.int32())
        return pa.MapArray.from_arrays(offsets, keys, items, mask=pa.array([each is None for each in values]))
    except REFUSALS:
        return pa.array([None if each is None else repr(each) for each in values], pa.string())


def _table(operator: str, keys: tuple[str, ...], pieces: list[Columns], values: Mapping[str, pa.Array]) -> pa.Table:
    """Join the workers' pieces of the key columns and add columns of values; one named as a key column gets another name."""
    full = [piece for piece in pieces if piece]
    columns = {
        name: joined_keys([piece[place] for piece in full], name, operator) if full else pa.nulls(0) for place, name in enumerate(keys)
    }
    return pa.table({**columns, **{f"state.{name}" if name in keys else name: column for name, column in values.items()}})
