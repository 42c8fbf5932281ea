"""Delivers the committed batches of an exchange folder to a function on the driver, as Spark's `foreachBatch` does.

A batch is exactly the files that its log entry names, with their columns, so it doesn't contain files that arrive meanwhile.
Invariant: batches are delivered in order, and a batch is not repeated once the function has returned for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...engine.errors import ConnectorError
from ...state.durable import write_durably
from ..exchange.exchange_folder import ExchangeFolder
from .session import problem_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Receive = Callable[["DataFrame", int], None]


class Delivery:
    """A series of calls `receive(df, batch)`, one for each batch; a file next to the log keeps the progress."""

    def __init__(self, spark: SparkSession, exchange: ExchangeFolder, receive: Receive, operator: str) -> None:
        self._spark, self._exchange, self._receive, self._operator = spark, exchange, receive, operator
        self._mark = exchange.own / "delivered"

    def at(self, exchange: ExchangeFolder) -> Delivery:
        """Return the same delivery for another exchange folder."""
        return Delivery(self._spark, exchange, self._receive, self._operator)

    def begin(self) -> None:
        """Deliver the batches in the present log that an earlier run committed but couldn't deliver.

        Raises ConnectorError naming the batch if the function raises.
        """
        latest = self._exchange.latest()
        newest = -1 if latest is None else latest
        if self._mark.exists():
            self.up_to(newest)
        else:
            self._remember(newest)

    def up_to(self, batch: int) -> None:
        """Deliver all batches up to and including `batch`. Raises ConnectorError naming the batch if the function raises."""
        for number in range(self._done() + 1, batch + 1):
            files = self._exchange.added(number)
            if files is None:
                raise ConnectorError(f"operator `{self._operator}`: batch {number} is missing in {self._exchange.log}")
            if files:
                self._hand_over(number, [f"file://{file.path}" for file in files])
            self._remember(number)

    def _hand_over(self, batch: int, paths: list[str]) -> None:
        try:
            self._receive(self._spark.read.option("mergeSchema", "true").parquet(*paths), batch)
        except ConnectorError:
            raise
        except Exception as error:
            raise ConnectorError(f"operator `{self._operator}`: batch {batch} could not be delivered: {problem_of(error)}") from error

    def _done(self) -> int:
        text = self._mark.read_text("utf-8")
        if not text.removeprefix("-").isdecimal():
            raise ConnectorError(
                f"operator `{self._operator}`: {self._mark} is damaged: {text[:40]!r}; write the number of the last delivered batch"
            )
        return int(text)

    def _remember(self, batch: int) -> None:
        write_durably(self._mark, str(batch).encode())
