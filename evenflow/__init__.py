"""evenflow: stream dataflows on Ray that keep their load even.

>>> import evenflow as ef
>>> flow, rows = ef.Dataflow("words"), []
>>> words = flow.read(ef.from_items(["a", "b", "a"]))
>>> _ = words.key_by("item").aggregate(n=ef.count(), emit="final").write(ef.to_list(rows))
>>> _ = flow.run(runtime="local").wait()
>>> sorted((row["item"], row["n"]) for row in rows)
[('a', 2), ('b', 1)]
"""

from __future__ import annotations

from .actors.elastic import ScalingReport
from .actors.node_scaling import NodeScalingReport
from .actors.supervisor import JobStatus
from .balancer.snapshot import LoadSnapshot
from .connectors.callback_sink import to_callback
from .connectors.csv import read_csv
from .connectors.csv_sink import write_csv
from .connectors.generate import generate
from .connectors.items import from_items
from .connectors.json import read_json
from .connectors.json_sink import write_json
from .connectors.list_sink import to_list
from .connectors.parquet import read_parquet
from .connectors.parquet_sink import write_parquet
from .connectors.print_rows import print_rows as print  # noqa: A004 -- ef.print, beside ef.to_list
from .connectors.spark.sink import to_spark
from .connectors.spark.source import from_spark
from .connectors.text import read_text
from .dataflow import Dataflow
from .engine.aggregates.custom import Aggregate
from .engine.aggregates.functions import approx_distinct, approx_quantile, count, first, last, max, mean, min, sum  # noqa: A004 -- as in SQL
from .engine.batch import Batch
from .engine.errors import ConnectorError, EvenflowError, FlowError, JobError, ProtocolError, RecordError
from .engine.key_states import list_state, map_state, value_state
from .engine.keyed_function import KeyContext, KeyedFunction
from .engine.sink import Sink, SinkWriter
from .engine.source import Source, SourceReader
from .engine.windows import sliding, tumbling
from .job import Job, connect
from .savepoint import SavedJob, read_savepoint
from .scheduler.checkpoints import CheckpointReport, CheckpointState
from .scheduler.config import JobConfig
from .scheduler.job_effects import JobState
from .scheduler.metrics import OperatorLoad, WorkerFigures
from .scheduler.migration import MigrationReport
from .scheduler.scaling.controller import DecisionRecord
from .stream import KeyedStream, Stream, WindowedStream

__all__ = [
    "Aggregate",
    "Batch",
    "CheckpointReport",
    "CheckpointState",
    "ConnectorError",
    "Dataflow",
    "DecisionRecord",
    "EvenflowError",
    "FlowError",
    "Job",
    "JobConfig",
    "JobError",
    "JobState",
    "JobStatus",
    "KeyContext",
    "KeyedFunction",
    "KeyedStream",
    "LoadSnapshot",
    "MigrationReport",
    "NodeScalingReport",
    "OperatorLoad",
    "ProtocolError",
    "RecordError",
    "SavedJob",
    "ScalingReport",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "Stream",
    "WindowedStream",
    "WorkerFigures",
    "approx_distinct",
    "approx_quantile",
    "connect",
    "count",
    "first",
    "from_items",
    "from_spark",
    "generate",
    "last",
    "list_state",
    "map_state",
    "max",
    "mean",
    "min",
    "print",
    "read_csv",
    "read_json",
    "read_parquet",
    "read_savepoint",
    "read_text",
    "sliding",
    "sum",
    "to_callback",
    "to_list",
    "to_spark",
    "tumbling",
    "value_state",
    "write_csv",
    "write_json",
    "write_parquet",
]
