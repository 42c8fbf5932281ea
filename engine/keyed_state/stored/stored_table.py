"""The state of running aggregates in a backend: a row per key, read and written by the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...aggregates.partial_aggregates import PartialAggregates, PartialAggregator
from ...batch import Batch
from ...context import Context
from ..table import AggregateTable
from .partial_rows import PartialRows
from .stored_rows import StoredRows, ToBatch
from .stored_state import StoredState


class StoredTable(StoredState, AggregateTable):
    """A table in a backend. A batch costs as much as its distinct keys, independent of the number of all keys."""

    def __init__(self, aggregator: PartialAggregator, context: Context) -> None:
        self.aggregator = aggregator
        self._form = PartialRows(aggregator)
        super().__init__(StoredRows(context, aggregator.keys, self._sent, self._form.about))

    @property
    def key_types(self) -> Sequence[pa.DataType]:
        return self._rows.types

    def merge(self, partial: PartialAggregates) -> PartialAggregates:
        places = self._rows.places(partial.keys)
        changed = self._form.merged(partial, self._rows.get(places))
        self._rows.put(places, self._form.pack(changed))
        return changed

    def known(self, keys: Sequence[pa.Array]) -> tuple[npt.NDArray[np.intp], PartialAggregates]:
        found = self._rows.get(self._rows.places(keys))
        places = np.flatnonzero(np.fromiter((row is not None for row in found), np.bool_, len(found)))
        return places, self._form.unpack((), [row for row in found if row is not None])

    def remove(self, keys: Sequence[pa.Array]) -> None:
        self._rows.backend.delete_many(*self._rows.places(keys))

    def install(self, chunk: Batch) -> None:
        if not self._form.learned(chunk, self._rows):
            super().install(chunk)

    def everything(self) -> Iterator[PartialAggregates]:
        return (self._form.unpack(columns, rows) for columns, rows in self._rows.read())

    def _saving(self) -> ToBatch:
        form, to_batch, binding = self._form, self.aggregator.to_batch, self.aggregator.binding
        return lambda columns, rows: to_batch(form.unpack(columns, rows, binding), None, None, binding)

    def _sent(self, columns: list[pa.Array], rows: list[bytes]) -> Batch:
        return self._form.sent(self._form.unpack(columns, rows), None)
