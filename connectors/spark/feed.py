"""Fills an exchange folder from Spark, by a streaming query or by a job that writes a DataFrame once.

Both run concurrently with the driver's own work and end with an end marker in the folder, which names the last batch or the
failure.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.errors import ConnectorError
from ..exchange.exchange_folder import EndMarker, ExchangeFolder
from .session import WriteSettings, finishes_within, problem_of, wait_for_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Trigger = Callable[["DataStreamWriter"], "DataStreamWriter"]

STOP_SECONDS = 60.0
RETRY_SECONDS = 0.25
"""The interval for retrying an interrupt: a job that is still being planned can't be interrupted."""

RESTARTS = 3
"""The number of restarts of a failing query without a new batch in between."""

RESTART_SECONDS = 0.1
"""The delay before the first restart; it doubles each time."""

_LOG = logging.getLogger(__name__)


class SparkFeed(ABC):
    """A writer of `df` into `exchange`. `start` and `stop` are called once each, on the driver."""

    def __init__(self, df: DataFrame, exchange: ExchangeFolder, max_rows_per_file: int, operator: str) -> None:
        self._df, self._exchange, self._max_rows_per_file, self._operator = df, exchange, max_rows_per_file, operator
        self._settings = WriteSettings(df.sparkSession)
        self._failure: str | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"evenflow-{operator}", daemon=True)

    def start(self) -> None:
        """Start to fill the folder; returns before there is data. Raises ConnectorError."""
        self._check()
        self._exchange.create()
        self._exchange.reopen()
        self._settings.hold()
        try:
            self._begin()
        except Exception as error:
            self._settings.release()
            raise ConnectorError(f"operator `{self._operator}`: Spark can't write {self._exchange.folder}: {problem_of(error)}") from error
        self._thread.start()

    def stop(self) -> None:
        """End the work if it still runs, and wait up to `STOP_SECONDS` until none of its tasks writes. Doesn't raise."""
        self._stopping = True
        deadline = time.monotonic() + STOP_SECONDS
        while self._thread.is_alive() and (left := deadline - time.monotonic()) > 0:
            finishes_within(left, self._interrupt)
            self._thread.join(RETRY_SECONDS)
        left = max(deadline - time.monotonic(), RETRY_SECONDS)
        finishes_within(left, lambda: wait_for_tasks(self._df.sparkSession, self._job_group, left))

    def failure(self) -> str | None:
        return self._failure

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 -- readers would wait for ever if any error of the thread didn't reach them
            if not self._stopping:
                self._failure = problem_of(error)
        finally:
            self._settings.release()
        if not self._stopping:
            latest = self._exchange.latest()
            self._exchange.finish(EndMarker(-1 if latest is None else latest, self._failure))

    @property
    @abstractmethod
    def _job_group(self) -> str:
        """The group of the Spark jobs that fill the folder."""

    @abstractmethod
    def _check(self) -> None:
        """Raise ConnectorError if the folder can't be filled from this DataFrame."""

    @abstractmethod
    def _begin(self) -> None:
        """Do the work that must be complete before `start` returns."""

    @abstractmethod
    def _work(self) -> None:
        """Fill the folder, in its own thread. Returns when all rows are committed, and raises any error."""

    @abstractmethod
    def _interrupt(self) -> None:
        """Make `_work` return or raise soon, if possible now; called until it does."""


class StreamFeed(SparkFeed):
    """A feed by Spark's streaming file sink, which writes the folder and its log. Stopping the query ends the stream in order.

    A failed query is restarted from its checkpoint: its committed batches stay, and none is repeated.
    """

    def __init__(
        self,
        df: DataFrame,
        exchange: ExchangeFolder,
        max_rows_per_file: int,
        operator: str,
        *,
        trigger: Trigger,
        checkpoint: str | None,
    ) -> None:
        super().__init__(df, exchange, max_rows_per_file, operator)
        self._trigger, self._checkpoint = trigger, checkpoint or str(exchange.own / "checkpoint")
        self._query: StreamingQuery | None = None

    @property
    def _job_group(self) -> str:
        return "" if self._query is None else str(self._query.runId)

    def _check(self) -> None:
        if "://" in self._checkpoint:
            return
        begun = any(Path(self._checkpoint, "offsets").glob("[0-9]*"))
        if not begun and self._exchange.latest() is not None:
            raise ConnectorError(
                f"operator `{self._operator}`: {self._exchange.folder} has the output of a query whose checkpoint is not in "
                f"{self._checkpoint}; Spark would skip the first batches of a new query: give that query's checkpoint=, or an empty path="
            )
        if any(Path(self._checkpoint, "commits").glob("[0-9]*")) and self._exchange.latest() is None:
            raise ConnectorError(
                f"operator `{self._operator}`: the checkpoint {self._checkpoint} is of a query that did not write into "
                f"{self._exchange.folder}; give that path=, or an empty checkpoint="
            )

    def _begin(self) -> None:
        writer = self._df.writeStream.format("parquet").outputMode("append")
        writer = writer.option("path", f"file://{self._exchange.folder}").option("checkpointLocation", self._checkpoint)
        writer = writer.option("maxRecordsPerFile", str(self._max_rows_per_file))
        self._query = self._trigger(writer).start()

    def _work(self) -> None:
        failures, committed = 0, self._exchange.latest()
        while True:
            assert self._query is not None
            try:
                self._query.awaitTermination()  # ends when the query does, and `_interrupt` ends the query
            except Exception as error:
                before, committed = committed, self._exchange.latest()
                failures = failures + 1 if before == committed else 1
                if self._stopping or failures > RESTARTS:
                    raise
                _LOG.warning("operator `%s`: Spark's query has failed and is restarted: %s", self._operator, problem_of(error, 200))
                time.sleep(RESTART_SECONDS * 2 ** (failures - 1))
                self._begin()
            else:
                return

    def _interrupt(self) -> None:
        assert self._query is not None
        self._query.stop()


class BatchFeed(SparkFeed):
    """A feed by a job that writes the DataFrame into a subfolder; its files then become the log's only batch."""

    def __init__(self, df: DataFrame, exchange: ExchangeFolder, max_rows_per_file: int, operator: str) -> None:
        super().__init__(df, exchange, max_rows_per_file, operator)
        self._group = f"evenflow-{uuid.uuid4().hex}"

    @property
    def _job_group(self) -> str:
        return self._group

    def _check(self) -> None:
        if self._exchange.latest() is not None:
            raise ConnectorError(
                f"operator `{self._operator}`: {self._exchange.folder} holds data already; give an empty path=, or read it with reuse=True"
            )

    def _begin(self) -> None:
        """Do nothing: the thread does all the work."""

    def _work(self) -> None:
        folder = self._exchange.folder / f"batch-{uuid.uuid4().hex[:12]}"
        # The session's own tags (`addTag`, `interruptTag`) don't find a write; a group of its context does.
        self._df.sparkSession.sparkContext.setJobGroup(self._group, f"evenflow reads `{self._operator}`")
        try:
            self._df.write.option("maxRecordsPerFile", self._max_rows_per_file).parquet(f"file://{folder}")
            self._exchange.publish(0, sorted(folder.glob("*.parquet"), key=_part_order))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _interrupt(self) -> None:
        self._df.sparkSession.sparkContext.cancelJobGroup(self._group)


def _part_order(path: Path) -> tuple[int, ...]:
    """Return the sort key of a file that Spark wrote, by partition and chunk: `part-00001-<uuid>-c1000.snappy.parquet` follows
    `c999`.
    """
    match = re.match(r"part-(\d+)-.*-c(\d+)\b", path.name)
    return (int(match[1]), int(match[2])) if match else ()
