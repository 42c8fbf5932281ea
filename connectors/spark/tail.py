"""A reader that follows the log of an exchange folder: every file of every committed batch, in log order.

All workers list the same files with the same numbers, and each reads its own: later files belong to worker `number %
parallelism`. A worker without a file in a batch still knows the batch's event times, so its watermark advances.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.errors import ConnectorError
from ...engine.protocol.elements import MIN_TIME
from ...engine.time.event_time import EventTime
from ..exchange.exchange_folder import ExchangeFolder
from ..exchange.log_file import LogFile
from ..files.split_position import SplitPosition, share_out_splits
from ..files.splits import Split, SplitReader
from ..formats.row_groups import open_parquet, read_row_groups, time_bounds
from ..quiet import CLOCKS, Clocks, Quiet
from .types import as_engine

IDLE_SECONDS = 0.05
"""The interval at which an idle reader looks for a new batch: well below the time that Spark needs for one."""


class TailReader(SplitReader):
    """A reader of one worker's part of the files in an exchange folder's log, until the end marker.

    Its position has the first batch that it has not read completely, the number of that batch's first file, and the event time
    before it. Earlier batches aren't read again.
    """

    def __init__(
        self,
        exchange: ExchangeFolder,
        schema: pa.Schema,
        *,
        operator: str,
        index: int,
        parallelism: int,
        event_time: EventTime | None,
        clocks: Clocks = CLOCKS,
    ) -> None:
        self._exchange, self._schema = exchange, schema
        self._batch = 0
        self._looked_beyond = -1
        self._quiet = Quiet(event_time, clocks)
        self._newest_batch = (0, 0, MIN_TIME)
        super().__init__(operator, [], self._rows, index=index, parallelism=parallelism, event_time=event_time, complete=False)

    def poll(self, max_rows: int) -> Batch | None:
        batch = super().poll(max_rows)
        if batch is not None:
            self._quiet.gave()
        return batch

    def watermark(self) -> int:
        if self._event_time is not None:
            self._watermark = max(self._watermark, self._quiet.bound)
        return super().watermark()

    def discover(self) -> None:
        look = self._quiet.look()
        # The marker is read before the log, so the log has all batches that the marker covers.
        end = self._exchange.end()
        if end is not None and end.failure is not None:
            raise ConnectorError(f"operator `{self._operator}`: Spark failed: {end.failure}")
        while not self._unread:
            files = self._exchange.added(self._batch)
            if files is None:
                self._expect_none_later(None if end is None else end.last)
                if end is not None:
                    self.complete()
                self._quiet.found_nothing(look)
                return
            self._newest_batch = (self._batch, self._listed_to, self._newest_listed)
            self.extend([self._split(file, self._listed_to + number) for number, file in enumerate(files)])
            self._batch += 1

    def position(self) -> dict[str, Any]:
        # A batch is only listed once all before it are read.
        being_read = self._unread or self._open is not None
        batch, first, newest = self._newest_batch if being_read else (self._batch, self._listed_to, self._newest_listed)
        return {**super().position(), "batch": batch, "first": first, "newest_listed": newest}

    def seek(self, position: Any) -> None:
        super().seek(position)
        self._batch, self._listed_to = position["batch"], position["first"]

    def ready_in(self) -> float:
        return IDLE_SECONDS

    def _expect_none_later(self, last: int | None) -> None:
        """Raise ConnectorError if the next batch is missing although a later one exists, or the log ends later (at batch `last`)."""
        if last is None and self._looked_beyond < self._batch:
            # Once for each batch is enough, since gaps are there from the start; listing a long log is slow.
            self._looked_beyond = self._batch
            latest = self._exchange.latest()
            if latest is not None and latest > self._batch and self._exchange.added(self._batch) is None:
                last = latest
        if last is not None and last >= self._batch:
            raise ConnectorError(
                f"operator `{self._operator}`: batch {self._batch} is missing in {self._exchange.log}, though the log continues to "
                f"batch {last}; Spark removes old log files unless spark.sql.streaming.fileSink.log.deletion is false; "
                "restore it, or start with an empty folder"
            )

    def _split(self, file: LogFile, ordinal: int) -> Split:
        if self._event_time is None:
            return Split(file.path, ordinal)
        with open_parquet(file.path, self._operator) as parquet:
            low, high = time_bounds(parquet.metadata, self._event_time)
        return Split(file.path, ordinal, min_time=low, max_time=high)

    def _rows(self, split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        for rows in read_row_groups(split, batch_rows, operator=self._operator, int96="us"):
            yield as_engine(rows, self._schema, split.path, self._operator)


def share_out_log(positions: Sequence[Any], parallelism: int, operator: str) -> list[Any]:
    """Return positions of `parallelism` tail readers, which begin at the first batch that a reader at `positions` has not read
    completely.
    """
    shared = share_out_splits([SplitPosition.decode(position) for position in positions], parallelism, operator)
    start = {"batch": min(position["batch"] for position in positions), "first": min(position["first"] for position in positions)}
    return [{**position.encode(), **start} for position in shared]
