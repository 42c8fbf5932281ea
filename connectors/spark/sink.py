"""Spark as a sink: files that become visible to Spark's readers together, when their checkpoint completes.

The files of a checkpoint become one batch of the exchange folder's log, so `spark.read.parquet(path)` and
`spark.readStream.parquet(path)` return exactly the committed rows, even if the folder contains other files.

>>> import tempfile
>>> import pyarrow as pa, pyarrow.parquet as pq
>>> from evenflow.engine.batch import Batch
>>> sink = to_spark(path=tempfile.mkdtemp())
>>> sink.start()
>>> writer = sink.writer(0, 1)
>>> writer.write(Batch(pa.record_batch({"n": [1, 2]})))
>>> prepared = writer.prepare(1)
>>> sink.exchange.latest(), sink.commit(1, prepared), sink.exchange.latest()
(None, [], 0)
>>> pq.read_table([file.path for file in sink.exchange.added(0)]).to_pylist()
[{'n': 1}, {'n': 2}]
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ...engine.errors import ConnectorError, FlowError
from ...engine.functions.user_function import check_function
from ..exchange.exchange_folder import ExchangeFolder
from ..files.file_sink import Encoder
from ..files.folder_sink import FolderSink
from ..files.layout import Layout
from ..files.remote import is_remote
from ..formats.parquet_sink import ParquetEncoder
from .delivery import Delivery, Receive
from .tables import append_to_table
from .types import as_parquet, parquet_schema, spark_refuses

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROLL_BYTES = 128 << 20
"""The size at which a file is closed, and the next one begun."""

ROWS_PER_GROUP = 131_072


def to_spark(
    spark: SparkSession | None = None,
    *,
    path: str | Path | None = None,
    table: str | None = None,
    foreach_batch: Callable[[DataFrame, int], None] | None = None,
    append: bool = False,
    name: str = "to_spark",
) -> SparkSink:
    """Write rows for Spark, as Parquet files in a folder with a log of committed files: exactly once.

    `path` is that folder, which all workers and Spark access by that path: read it with `spark.read.parquet(path)` or, while the
    job runs, with `spark.readStream.schema(...).parquet(path)`. It must be empty, unless `append` adds to the rows of an earlier
    run. Without `path`, a temporary folder of this machine is used and removed; a job with a checkpoint folder uses one inside
    it, which stays.

    `table` is a table of the catalog that gets the rows of each checkpoint when it completes; it is created if it doesn't exist.
    A value that would change in the type of the table's column ends the job, except a float that is rounded to a shorter one.
    `foreach_batch(df, batch_id)` is called on the driver with the rows of each checkpoint that has any, as Spark's own is: in
    order, with ids that rise by one. The call is repeated with the same rows and id if the driver was lost during it. Both use
    `spark`, by default the active session, and delay the job's next step on the driver while they work.

    A column that changes its type midway raises ConnectorError, and so does a type that Spark's Parquet reader lacks. Timestamps
    are written in microseconds. Columns that have been all null so far are omitted from the files; Spark reads them as null where
    other files have them.
    """
    if table is not None and foreach_batch is not None:
        raise FlowError(f"operator `{name}`: choose one of table= and foreach_batch=; the function can append to a table too")
    if path is None and table is None and foreach_batch is None:
        raise FlowError(f"operator `{name}`: choose the destination of the rows: path=, table= or foreach_batch=")
    if foreach_batch is not None:
        check_function(foreach_batch, "to_spark(foreach_batch=...)", "df", "batch_id")
    receive: Receive | None = foreach_batch if table is None else lambda df, _: append_to_table(df, table, name)
    if receive is not None and spark is None:
        spark = _active_session(name)
    return SparkSink(spark, path, receive, append, name)


class SparkSink(FolderSink):
    """The sink that `to_spark` creates. The workers' copy has only the folder, and needs no Spark."""

    guarantee = "exactly once (a batch of Spark's file log appears when the checkpoint that holds it completes)"
    extension = ".parquet"
    remedies = "append=True"

    def __init__(self, spark: SparkSession | None, path: str | Path | None, receive: Receive | None, append: bool, name: str) -> None:
        self._temporary = path is None
        self._kept: str | None = None
        folder = path or Path(tempfile.gettempdir(), f"evenflow-exchange-{uuid.uuid4().hex}")
        super().__init__(folder, overwrite=False, append=append, name=name, layout=Layout(roll_bytes=ROLL_BYTES))
        self.exchange = ExchangeFolder(self.folder)
        self._delivers = receive is not None
        self._delivery: Delivery | None = None
        if receive is not None and spark is not None:
            self._delivery = Delivery(spark, self.exchange, receive, name)
            self.driver_part = "the Spark session that gets its batches"

    def of_job(self, job: str, operator: str, checkpoints: str | None) -> None:
        kept = self._temporary and checkpoints is not None and not is_remote(checkpoints)
        self._kept = f"{checkpoints}/exchange/{operator}" if kept else None

    def of_run(self, run: str, *, continues: bool) -> None:
        super().of_run(run, continues=continues)
        if self._kept is not None:  # a temporary folder would be lost with this process, and with it rows that were not delivered
            self.parts = self.store_at(f"{self._kept}-{run[:8]}")
            self.exchange = ExchangeFolder(self.folder)
            self._delivery = self._delivery.at(self.exchange) if self._delivery is not None else None

    def start(self) -> None:
        super().start()
        unlisted = next(self.folder.glob("*.parquet"), None)
        if unlisted is not None and not self.exchange.log.exists():
            raise ConnectorError(
                f"operator `{self.name}`: {self.folder} has files without a log of Spark's file sink, for example {unlisted.name}: "
                "Spark would no longer see them; choose another folder"
            )
        self.exchange.create()
        if self._delivery is not None:
            self._delivery.begin()

    def stop(self) -> None:
        super().stop()
        if self._temporary and self._kept is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        super().commit(checkpoint, committables)
        if not committables:
            return []
        batch = self.exchange.append([self.folder / part["final"] for part in committables])
        return [batch] if self._delivers else []

    @property
    def retractable(self) -> bool:
        """False with a table or a function, which have received the rows already."""
        return not self._delivers

    def retract(self, after: int) -> list[Any]:
        """Remove the batches of later checkpoints from the end of the log, then their files. Spark keeps rows that it has read."""
        self.exchange.cut_off({str(self.folder / path) for path in self.later_than(after)})
        return super().retract(after)

    def deliver(self, payload: Any) -> None:
        assert self._delivery is not None
        self._delivery.up_to(payload)

    def check_type(self, kind: pa.DataType) -> str | None:
        return spark_refuses(kind)

    def encoder(self, file: BinaryIO, schema: pa.Schema) -> SparkEncoder:
        return SparkEncoder(file, schema, self.name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_delivery": None}


class SparkEncoder(Encoder):
    """An encoder of rows as Parquet in the types that Spark reads."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, operator: str) -> None:
        self._schema, self._operator = parquet_schema(schema), operator
        # Spark has its own schema metadata; Arrow's would turn a timestamp back to nanoseconds for readers that know it.
        writer = pq.ParquetWriter(file, self._schema, compression="zstd", store_schema=False)
        self._parquet = ParquetEncoder(writer, ROWS_PER_GROUP)

    @property
    def waiting(self) -> int:
        return self._parquet.waiting

    def write(self, rows: pa.RecordBatch) -> None:
        self._parquet.write(as_parquet(rows, self._schema, self._operator))

    def finish(self) -> None:
        self._parquet.finish()


def _active_session(name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        raise FlowError(f"operator `{name}`: table= and foreach_batch= need a Spark session: to_spark(spark, ...)")
    return spark
