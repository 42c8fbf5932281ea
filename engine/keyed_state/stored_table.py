"""The state of running aggregates in a backend: a row per key, read and written by the batch."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ..aggregates.binding import Binding
from ..aggregates.partial_aggregates import PartialAggregates, PartialAggregator
from ..batch import Batch
from ..operators.base import Context
from ..protocol.routing import Move
from ..snapshots.changes import Changes
from .base import StateTransfer
from .partial_rows import PartialRows
from .stored_rows import StoredRows
from .table import Table


class StoredTable(Table):
    """A batch costs as much as its distinct keys, however many keys there are in all."""

    def __init__(self, aggregator: PartialAggregator, context: Context) -> None:
        self._aggregator = aggregator
        self._form = PartialRows(aggregator)
        self._rows = StoredRows(context, aggregator.keys, self._sent, self._form.about)
        self.passes_on = self._rows.backend.passes_on

    def merge(self, partial: PartialAggregates) -> PartialAggregates:
        places = self._rows.places(partial.keys)
        changed = self._form.merged(partial, self._rows.get(places))
        self._rows.put(places, self._form.pack(changed))
        return changed

    def install(self, chunk: Batch) -> None:
        if not self._form.learned(chunk, self._rows):
            partial, _ = self._aggregator.from_batch(chunk)
            self.merge(partial)

    def everything(self) -> Iterator[PartialAggregates]:
        return (self._form.unpack(columns, rows) for columns, rows in self._rows.read())

    def snapshot(self) -> Iterator[Batch]:
        binding = self._aggregator.binding
        return (self._saved(columns, rows, binding) for columns, rows in self._rows.snapshot())

    def changes(self) -> Changes | None:
        return self._rows.changes()

    def delta(self, changes: Changes) -> Iterator[Batch]:
        binding = self._aggregator.binding
        return self._rows.delta(changes, lambda columns, rows: self._saved(columns, rows, binding))

    def depart(self, move: Move) -> StateTransfer:
        return self._rows.depart(move)

    @property
    def nbytes(self) -> int:
        return self._rows.backend.nbytes()

    def close(self) -> None:
        self._rows.backend.close()

    def _saved(self, columns: list[pa.Array], rows: list[bytes], binding: Binding | None) -> Batch:
        return self._aggregator.to_batch(self._form.unpack(columns, rows, binding), None, None, binding)

    def _sent(self, columns: list[pa.Array], rows: list[bytes]) -> Batch:
        return self._form.sent(self._form.unpack(columns, rows), None)
