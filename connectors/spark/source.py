"""Spark as a source: a DataFrame, streaming or not, becomes files in an exchange folder, which the workers read as they are
committed.

Every reader sees the records of a committed batch whole or not at all, and in the same order, so a checkpoint only needs a
position in the log.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.columns import Columns
from ...engine.errors import FlowError
from ...engine.protocol.elements import MAX_TIME
from ...engine.source import Source
from ...engine.time.duration import Duration, microseconds
from ...engine.time.event_time import EventTime
from ..exchange.exchange_folder import EndMarker, ExchangeFolder
from ..files.split_position import SplitPosition
from ..quiet import event_time_of, idle_advice
from .feed import BatchFeed, SparkFeed, StreamFeed, Trigger
from .tail import TailReader, share_out_log
from .types import engine_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_ROWS_PER_FILE = 1_000_000


def from_spark(
    df: DataFrame,
    *,
    event_time: str | None = None,
    unit: str = "ms",
    max_delay: Duration = 0,
    idle_after: Duration | None = None,
    path: str | Path | None = None,
    trigger: Duration | None = None,
    checkpoint: str | None = None,
    max_rows_per_file: int = MAX_ROWS_PER_FILE,
    reuse: bool = False,
    name: str = "from_spark",
) -> SparkSource:
    """Read the rows of a Spark DataFrame, exactly once.

    A streaming `df` becomes a streaming query that runs as long as the job. `trigger` is the time between two micro-batches
    (default: each as soon as the previous one is done), or "availableNow": the stream then ends with the rows that exist at the
    start. It also ends when the query is stopped. A failed query is restarted from its checkpoint; after three failures without a
    new micro-batch the job fails. `checkpoint` is the query's checkpoint location, by default next to the data in `path`. A batch
    `df` is written once, and the stream ends with its last row; with `reuse`, the rows that an earlier run wrote to `path` are
    read instead.

    `path` is a folder that Spark and all workers access by that path. It is kept afterwards: a job that begins from a checkpoint
    of an earlier run needs it. Without `path`, a temporary folder of this machine is used and removed. A file contains at most
    `max_rows_per_file` rows; one worker reads a whole file.

    `event_time` names the event time column: timestamps, dates, or integers that count `unit` since the Unix epoch. A row may be
    up to `max_delay` older than one before it: in its file, and in all earlier micro-batches. `idle_after` is as in
    `from_generator`, for a streaming `df` as a whole; the time of a micro-batch counts to `max_delay`.

    The start of the job raises ConnectorError for a missing event time column, a column type that Arrow lacks, and a folder with
    other content.
    """
    ends = None if df.isStreaming else "streaming DataFrames"
    spec = event_time_of(event_time, unit, max_delay, idle_after, name=name, ends=ends)
    if max_rows_per_file < 1:
        raise FlowError(f"operator `{name}`: max_rows_per_file is {max_rows_per_file}; it must be at least 1")
    streaming = df.isStreaming
    for option, given in (("trigger", trigger is not None), ("checkpoint", checkpoint is not None)):
        if given and not streaming:
            raise FlowError(f"operator `{name}`: {option}= is for streaming DataFrames, and this one is not")
    if reuse and (streaming or path is None):
        raise FlowError(f"operator `{name}`: reuse=True is for a batch DataFrame with a path=")
    return SparkSource(df, spec, path, _trigger(trigger, name), checkpoint, max_rows_per_file, reuse, name)


class SparkSource(Source):
    """The source that `from_spark` creates. The workers' copy has only the folder and the schema, and needs no Spark."""

    guarantee = "exactly once (seeks to the checkpointed file and row of Spark's output log)"
    driver_part = "Spark, which writes the files that it reads"

    def __init__(
        self,
        df: DataFrame,
        event_time: EventTime | None,
        path: str | Path | None,
        trigger: Trigger,
        checkpoint: str | None,
        max_rows_per_file: int,
        reuse: bool,
        name: str,
    ) -> None:
        self.name, self._event_time, self._reuse = name, event_time, reuse
        self.timed, self.time_column = event_time is not None, None if event_time is None else event_time.column
        self._temporary = path is None
        self.lost_with_process = "the temporary folder that Spark writes into: give path=" if path is None else None
        self._exchange = ExchangeFolder(path or Path(tempfile.gettempdir(), f"evenflow-exchange-{uuid.uuid4().hex}"))
        self._schema = engine_schema(df.schema, name)
        self._feed: SparkFeed | None
        self.idle_advice = idle_advice(event_time, "stream") if df.isStreaming else ""
        if df.isStreaming:
            self._feed = StreamFeed(df, self._exchange, max_rows_per_file, name, trigger=trigger, checkpoint=checkpoint)
        else:
            self._feed = BatchFeed(df, self._exchange, max_rows_per_file, name)

    def start(self) -> None:
        if self._event_time is not None:
            self._event_time.check(self._schema, self.name)
        written = self._exchange.latest()
        if self._reuse and written is not None:
            self._exchange.finish(EndMarker(written))
            self._feed = None
        if self._feed is not None:
            self._feed.start()

    def stop(self) -> None:
        if self._feed is not None:
            self._feed.stop()
        if self._temporary:
            shutil.rmtree(self._exchange.folder, ignore_errors=True)

    def failure(self) -> str | None:
        problem = None if self._feed is None else self._feed.failure()
        return None if problem is None else f"operator `{self.name}`: Spark failed: {problem}"

    def known_columns(self) -> Columns:
        return Columns.of(self._schema)

    def reader(self, index: int, parallelism: int) -> TailReader:
        return TailReader(
            self._exchange, self._schema, operator=self.name, index=index, parallelism=parallelism, event_time=self._event_time
        )

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        return share_out_log(positions, parallelism, self.name)

    def earliest(self, position: Any) -> int:
        return MAX_TIME if self._event_time is None else SplitPosition.decode(position).earliest

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_feed": None}


def _trigger(trigger: Duration | None, name: str) -> Trigger:
    if trigger is None:
        return lambda writer: writer
    if trigger == "availableNow":
        return lambda writer: writer.trigger(availableNow=True)
    interval = f"{microseconds(trigger, f'operator `{name}`: trigger') // 1_000} milliseconds"
    return lambda writer: writer.trigger(processingTime=interval)
