"""`stateful_map`: a user's function per record with a state per key.

This is the loop where a user's Python runs once a record: everything around the call is done per batch.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from ..batch import Batch
from ..keys import key_values
from ..rows import RowsEncoder
from .base import Context, Emit
from .keyed_states import KeyedStates
from .user_function import refuse
from .with_states import WithStates

StatefulFunction = Callable[[Any, dict[str, Any]], tuple[Any, Any]]
"""`function(state, row) -> (state, row or None)`; the state is None for a new key, and returning None forgets the key."""


class StatefulMap(WithStates):
    """Rows come in arrival order; a result has its row's event time."""

    def __init__(self, keys: tuple[str, ...], function: StatefulFunction, schema: pa.Schema | None = None) -> None:
        self.keys, self.function, self.schema = keys, function, schema

    def open(self, context: Context) -> None:
        super().open(context)
        self.encoder = RowsEncoder(context.name, self.schema)
        self.states = KeyedStates(context, self.keys)

    def process(self, batch: Batch, emit: Emit) -> None:
        self.note_rows(batch.rows)
        results, places = self._call(batch, self.states.read(batch.rows))
        if results:
            times = None if batch.times is None else batch.times[np.array(places, np.int64)]
            emit(Batch(self.encoder.encode(results), times))

    def _call(self, batch: Batch, states: dict[Any, Any]) -> tuple[list[Any], list[int]]:
        """The results that are not None, and the places of their rows."""
        function, get = self.function, states.get
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
        self.states.written(len(states) - before + forgotten)
        return results, places

    def describe(self) -> str:
        return f"{getattr(self.function, '__qualname__', 'function')} by {', '.join(self.keys)}"
