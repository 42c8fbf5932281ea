"""The exchange by key: every row goes to the worker that owns its key.

Rows are gathered until there are some for each worker, because a slice of a batch costs as much for one row as for a thousand. So the
time of a batch hardly grows with the number of workers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..joins.sides import Side, side_of
from ..keys.encoding import key_column, key_hashes
from ..protocol.effects import Sent
from ..protocol.elements import LatencyMark
from ..protocol.handover_step import HandoverStep
from ..protocol.ids import ChannelId
from ..protocol.routing import Hashes, RoutingTable
from ..types.exact import NoCommonType, common
from .exchange import KeyedExchange, runs

ROWS_EACH = 256
"""Rows for each worker, on average, from which on a batch is routed at once."""


class HashExchange(KeyedExchange):
    """An exchange that sends every record to the worker that owns its key.

    `tells_columns`: every channel gets a batch without rows before the first batch with new columns or wider types.
    """

    def __init__(
        self,
        channels: Sequence[ChannelId],
        batch_rows: int,
        operator: str,
        keys: tuple[str, ...],
        table: RoutingTable,
        *,
        tells_columns: bool = False,
    ) -> None:
        super().__init__(channels, batch_rows)
        self.operator, self.keys, self.table = operator, keys, table
        self._tells_columns = tells_columns
        self._told: Batch | None = None
        self._dealt = 0
        self._gathered: list[tuple[Batch, Hashes]] = []
        self._rows, self._since = 0, 0.0

    @property
    def waiting_since(self) -> float | None:
        since = super().waiting_since
        return since if not self._gathered else self._since if since is None else min(self._since, since)

    @property
    def waits(self) -> bool:
        return bool(self._gathered) or super().waits

    def push(self, batch: Batch, now: float, out: list[Sent]) -> None:
        if self._tells_columns and (self._told is None or not batch.rows.schema.equals(self._told.rows.schema)):
            self._route(out)
            self._tell(batch, now)
        if len(self.buffers) == 1:
            self._add(self.buffers[0], batch, now, out)
            return
        columns = [key_column(batch.rows, key, self.operator) for key in self.keys]
        if not self._gathered:
            self._since = now
        self._gathered.append((batch, key_hashes(columns, self.operator)))
        self._rows += batch.num_rows
        if self._rows >= min(ROWS_EACH, self.batch_rows) * len(self.buffers):
            self._route(out)

    def mark(self, mark: LatencyMark, out: list[Sent]) -> None:
        self._route(out)
        super().mark(mark, out)

    def flush(self, out: list[Sent]) -> None:
        if not self.paused:
            self._route(out)
        super().flush(out)

    def attach(self, place: int, channel: ChannelId, out: list[Sent]) -> None:
        self._route(out)
        if self._told is not None:
            out.append(Sent(channel, self._told))
        super().attach(place, channel, out)

    def detach(self, channels: Collection[ChannelId], out: list[Sent]) -> None:
        self._route(out)
        super().detach(channels, out)

    def switch(self, step: HandoverStep, out: list[Sent]) -> None:
        self._route(out)
        super().switch(step, out)
        self.table = self.table.after(step.moves)

    def _route(self, out: list[Sent]) -> None:
        """Put the gathered rows into the buffers of their workers, in order."""
        if not self._gathered:
            return
        gathered, self._gathered, self._rows = self._gathered, [], 0
        hashes, start = np.concatenate([hashes for _, hashes in gathered]), 0
        for run in runs(batch for batch, _ in gathered):
            batch = Batch.concat(run)
            self._share_out(batch, hashes[start : start + batch.num_rows], out)
            start += batch.num_rows

    def _share_out(self, batch: Batch, hashes: Hashes, out: list[Sent]) -> None:
        targets, places = self.table.owners(hashes), None
        if self.table.splits:
            targets, places = self._shared(hashes, targets, side_of(batch.rows.schema))
        counts = np.bincount(targets, minlength=len(self.buffers))
        if counts.max(initial=0) == len(targets):
            self._add(self.buffers[int(targets[0]) if len(targets) else 0], batch, self._since, out)
            return
        order = np.argsort(targets, kind="stable")
        ordered, start = batch.take(order if places is None else places[order]), 0
        for buffer, count in zip(self.buffers, counts.tolist(), strict=True):
            if count:
                self._add(buffer, ordered.slice(start, count), self._since, out)
            start += count

    def _tell(self, batch: Batch, now: float) -> None:
        """Add a batch without rows to every channel, unless the columns told before hold those of `batch`."""
        told, schema = None if self._told is None else self._told.rows.schema, batch.rows.schema
        if told is not None and _all_names(told) == _all_names(schema):
            with suppress(NoCommonType):  # the join refuses such columns
                schema = common([told, schema])
        if told is None or not schema.equals(told):
            self._told = batch.slice(0, 0).with_rows(pa.RecordBatch.from_pylist([], schema))
            for buffer in self.buffers:
                buffer.add(self._told, now)

    def _shared(self, hashes: Hashes, targets: npt.NDArray[np.uint16], side: Side) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.intp]]:
        """Return the worker and the index of each row to send; rows that go to several workers are repeated.

        `targets`: the owner of each row's key.
        """
        to, places = [targets], [np.arange(len(hashes))]
        for key, split in self.table.splits.items():
            rows = np.flatnonzero(hashes == np.uint64(key))
            if side.dealt == split.dealt:
                turns = (np.arange(len(rows)) + self._dealt) % len(split.workers)
                targets[rows] = np.array(split.workers, np.uint16)[turns]
                self._dealt += len(rows)
            elif len(rows):
                to += [np.full(len(rows), worker, np.uint16) for worker in split.others]
                places += [rows] * len(split.others)
        return np.concatenate(to), np.concatenate(places)


def _all_names(schema: pa.Schema) -> list[tuple[str, ...]]:
    """Return the names of all columns, and of the columns in structs."""
    return [(field.name, *(part.name for part in field.type)) if pa.types.is_struct(field.type) else (field.name,) for field in schema]
