"""The operator `map_batches` with a `batch_size`: rows wait until there are enough of them for one call, or for the time-out.

Invariant: no watermark, barrier or move of keys overtakes a row that waits. So the state of an instance is never saved, and rows keep
their order.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...batch import Batch
from ...context import Context, Emit
from ...protocol.elements import MIN_TIME
from ..own_watermark import OwnWatermark, OwnWatermarkInstance
from .map_batches import MapBatches, MapBatchesInstance


@dataclass(frozen=True, eq=False)
class MapGathered(MapBatches, OwnWatermark):
    """An operator that calls a function with `size` rows, or with those that have come once one has waited `timeout` microseconds."""

    size: int = 1
    timeout: int = 0
    ticks = True

    def open(self, context: Context) -> MapGatheredInstance:
        return MapGatheredInstance(self, context)

    def describe(self) -> str:
        return f"{super().describe()}, {self.size} rows at a time"


class MapGatheredInstance(MapBatchesInstance, OwnWatermarkInstance):
    """An instance with rows that wait, and the watermark that it had when the first of them came."""

    def __init__(self, operator: MapGathered, context: Context) -> None:
        super().__init__(operator, context)
        self._size, self._timeout = operator.size, operator.timeout
        self._waiting: list[Batch] = []
        self._rows = 0
        self._since = 0
        """The arrival of the first row that waits, in microseconds since the epoch."""
        self._input_watermark = self._held_watermark = MIN_TIME

    @property
    def watermark(self) -> int:
        return self._held_watermark if self._waiting else self._input_watermark

    def rewind(self) -> None:
        self._input_watermark = self._held_watermark = MIN_TIME

    def advance(self, watermark: int, emit: Emit) -> None:
        self._input_watermark = watermark

    def process(self, batch: Batch, emit: Emit) -> None:
        if self._waiting and not self._waiting[0].rows.schema.equals(batch.rows.schema):
            self.settle(emit)
        while self._rows + batch.num_rows >= self._size:
            first = self._size - self._rows
            self._add(batch.slice(0, first))
            batch = batch.slice(first, batch.num_rows - first)
            self.settle(emit)
        if batch.num_rows:
            self._add(batch)
        self.tick(emit)

    def tick(self, emit: Emit) -> None:
        if self._waiting and self.context.now() - self._since >= self._timeout:
            self.settle(emit)

    def settle(self, emit: Emit) -> None:
        if self._waiting:
            batch = Batch.concat(self._waiting)
            self._waiting, self._rows = [], 0
            super().process(batch, emit)

    def finish(self, emit: Emit) -> None:
        self.settle(emit)

    def _add(self, batch: Batch) -> None:
        if not self._waiting:
            self._since, self._held_watermark = self.context.now(), self._input_watermark
        self._waiting.append(batch)
        self._rows += batch.num_rows
