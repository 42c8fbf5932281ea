"""The state of windows in a backend: a row per pane and key, read and written by the batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ....state.backends.base import SNAPSHOT_CHUNK
from ...aggregates.partial_aggregates import PartialAggregates, PartialAggregator
from ...batch import Batch
from ...context import Context
from ...protocol.routing import Move
from ..base import StateTransfer
from ..panes import Panes
from .backend_transfer import BackendTransfer
from .partial_rows import PartialRows
from .stored_rows import StoredRows, ToBatch
from .stored_state import StoredState


class StoredPanes(StoredState, Panes):
    """Panes in a backend. A batch costs as much as its distinct keys in each pane; a window is emitted group by group."""

    def __init__(self, aggregator: PartialAggregator, context: Context) -> None:
        self.aggregator = aggregator
        self._form = PartialRows(aggregator)
        super().__init__(StoredRows(context, aggregator.keys, self._sent, self._form.about, paned=True))

    def starts(self) -> Collection[int]:
        return self._rows.panes

    def _append(self, pane: int, partial: PartialAggregates) -> None:
        once = self.aggregator.combine([partial])
        places = self._rows.places([*once.keys, pa.array(np.full(len(once), pane, np.int64))])
        self._rows.put(places, self._form.pack(self._form.merged(once, self._rows.get(places))))

    def window(self, panes: Sequence[int]) -> Iterator[PartialAggregates]:
        for columns, rows in self._rows.read(panes):
            partial = self._form.unpack(columns[:-1], rows)
            yield partial if len(panes) == 1 else self.aggregator.combine([partial])

    def of_keys(self, panes: Sequence[int], keys: Sequence[pa.Array]) -> Iterator[PartialAggregates]:
        partials = []
        for pane in panes:
            columns = [*keys, pa.array(np.full(len(keys[0]), pane, np.int64))]
            found = self._rows.get(self._rows.places(columns))
            there = pa.array([place for place, row in enumerate(found) if row is not None], pa.int64())
            partials.append(self._form.unpack([column.take(there) for column in keys], [row for row in found if row is not None]))
        yield self.aggregator.combine(partials)

    def drop(self, panes: Sequence[int]) -> None:
        self._rows.drop(panes)

    def install(self, chunk: Batch) -> None:
        if self._form.learned(chunk, self._rows):
            self._installed(None, None)
        else:
            super().install(chunk)

    def depart(self, move: Move) -> StateTransfer:
        panes = list(self.starts())
        return _CutOut(self._rows, self._rows.depart(move), panes, move)

    def _saving(self) -> ToBatch:
        form, to_batch, binding = self._form, self.aggregator.to_batch, self.aggregator.binding
        return lambda columns, rows: to_batch(form.unpack(columns[:-1], rows, binding), None, columns[-1].to_numpy(), binding)

    def _sent(self, columns: list[pa.Array], rows: list[bytes]) -> Batch:
        return self._form.sent(self._form.unpack(columns[:-1], rows), columns[-1].to_numpy())


class _CutOut(StateTransfer):
    """A transfer that reads rows at once if they must be sent, and otherwise only their names."""

    def __init__(self, rows: StoredRows, transfer: BackendTransfer, panes: Sequence[int], move: Move) -> None:
        self._rows, self._transfer, self._panes = rows, transfer, panes
        self._cut: deque[Batch] = deque()
        while (batch := transfer.next_chunk_here(SNAPSHOT_CHUNK)) is not None:
            self._cut.append(batch)
        rows.forget_groups(transfer.whole)

    def next_chunk(self, keys: int) -> Batch | None:
        if not self._cut:
            return self._transfer.next_chunk(keys)
        batch = self._cut.popleft()
        if batch.num_rows > keys:
            self._cut.appendleft(batch.slice(keys, batch.num_rows - keys))
            batch = batch.slice(0, keys)
        return batch

    def fetch(self, columns: Sequence[pa.Array]) -> Sequence[Batch]:
        """Return the bindings that the new owner needs to read the rows it finds; cut-out rows are merged on arrival."""
        if not self._transfer.passes or not self._panes:
            return ()
        return (self._rows.naming([*(column[:1] for column in columns), pa.array(self._panes[:1])]),)
