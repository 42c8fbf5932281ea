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

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .balancer.snapshot import LoadSnapshot
    from .connectors.delta.sink import write_delta
    from .connectors.delta.source import read_delta
    from .connectors.formats.csv import read_csv
    from .connectors.formats.csv_sink import write_csv
    from .connectors.formats.json import read_json
    from .connectors.formats.json_sink import write_json
    from .connectors.formats.parquet import read_parquet
    from .connectors.formats.parquet_sink import write_parquet
    from .connectors.formats.text import read_text
    from .connectors.generated.generate import generate
    from .connectors.iceberg.sink import write_iceberg
    from .connectors.iceberg.source import read_iceberg
    from .connectors.kafka.reading.source import read_kafka
    from .connectors.kafka.writing.sink import write_kafka
    from .connectors.nexmark.source import nexmark
    from .connectors.python.callback_sink import to_callback
    from .connectors.python.function_sink import to_function
    from .connectors.python.generator import from_generator
    from .connectors.python.items import from_items
    from .connectors.python.list_sink import to_list
    from .connectors.python.print_rows import print_rows as print  # noqa: A004 -- ef.print, like ef.to_list
    from .connectors.spark.sink import to_spark
    from .connectors.spark.source import from_spark
    from .connectors.sql.sink import write_sql
    from .dataflow import Dataflow
    from .engine.aggregates.named.custom import Aggregate
    from .engine.aggregates.named.functions import (
        approx_distinct,
        approx_quantile,
        collect,
        count,
        count_distinct,
        first,
        last,
        max,  # noqa: A004 -- named as in SQL
        max_by,
        mean,
        median,
        min,  # noqa: A004 -- named as in SQL
        min_by,
        quantile,
        stddev,
        sum,  # noqa: A004 -- named as in SQL
        top,
        variance,
    )
    from .engine.batch import Batch
    from .engine.errors import (
        ClusterError,
        ConnectorError,
        FlowError,
        JobBusyError,
        JobError,
        JobFailedError,
        JobLostError,
        JobNotRunningError,
        JobTimeoutError,
        ProtocolError,
        RecordError,
        RequestError,
        SnapshotError,
        UpgradeRolledBackError,
    )
    from .engine.expressions.expression import Expression, col, lit, when
    from .engine.functions.keyed_function import CoKeyedFunction, KeyContext, KeyedFunction
    from .engine.functions.measures import FunctionContext
    from .engine.functions.state_declarations import list_state, map_state, value_state
    from .engine.joins.within import always, between
    from .engine.patterns.step import step
    from .engine.plan.upgrade.verdicts import UpgradePlan
    from .engine.secrets import secret
    from .engine.sink import Sink, SinkWriter
    from .engine.source import Source, SourceReader
    from .engine.time.row_windows import rows
    from .engine.time.sessions import session
    from .engine.time.windows import Window, sliding, tumbling
    from .job import Job, connect
    from .pictures.svg import Picture
    from .saved_checkpoints import SavedCheckpoint, latest_checkpoint, list_checkpoints
    from .savepoint import SavedJob, read_savepoint
    from .scheduler.configs.autoscale import AutoscaleConfig
    from .scheduler.configs.balance import BalanceConfig
    from .scheduler.configs.checkpoint import CheckpointConfig
    from .scheduler.configs.job import JobConfig
    from .scheduler.configs.restart import RestartConfig
    from .scheduler.configs.run import MetricsConfig, NetworkConfig, StateConfig
    from .scheduler.configs.worker import WorkerConfig
    from .scheduler.load.metrics import OperatorLoad, WorkerFigures
    from .scheduler.policies.controller import DecisionRecord
    from .scheduler.policies.dhalion import Dhalion
    from .scheduler.policies.ds2 import Ds2
    from .scheduler.policies.latency import LatencyPolicy
    from .scheduler.policies.pid import PidPolicy
    from .scheduler.policies.queueing import QueueingPolicy
    from .scheduler.policies.stela import Stela
    from .scheduler.policies.threshold import ThresholdPolicy
    from .scheduler.protocol.changed_settings import SettingChange
    from .scheduler.protocol.effects import JobState
    from .scheduler.protocol.reports import (
        CheckpointReport,
        CheckpointState,
        MigrationReport,
        NodeScalingReport,
        ScalingReport,
        UpgradeReport,
        UpgradeState,
    )
    from .scheduler.protocol.status import JobStatus
    from .sql_translation.statement import sql
    from .state.errors import CorruptStateError, EvenflowError, StateBackendError, StateError
    from .stream import BroadcastStream, JoinResults, KeyedStream, Stream, WindowedStream

_HOMES = {
    "Aggregate": "engine.aggregates.named.custom",
    "AutoscaleConfig": "scheduler.configs.autoscale",
    "BalanceConfig": "scheduler.configs.balance",
    "Batch": "engine.batch",
    "BroadcastStream": "stream",
    "CheckpointConfig": "scheduler.configs.checkpoint",
    "CheckpointReport": "scheduler.protocol.reports",
    "CheckpointState": "scheduler.protocol.reports",
    "ClusterError": "engine.errors",
    "CoKeyedFunction": "engine.functions.keyed_function",
    "ConnectorError": "engine.errors",
    "CorruptStateError": "state.errors",
    "Dataflow": "dataflow",
    "DecisionRecord": "scheduler.policies.controller",
    "Dhalion": "scheduler.policies.dhalion",
    "Ds2": "scheduler.policies.ds2",
    "EvenflowError": "state.errors",
    "Expression": "engine.expressions.expression",
    "FlowError": "engine.errors",
    "FunctionContext": "engine.functions.measures",
    "Job": "job",
    "JobBusyError": "engine.errors",
    "JobConfig": "scheduler.configs.job",
    "JobError": "engine.errors",
    "JobFailedError": "engine.errors",
    "JobLostError": "engine.errors",
    "JobNotRunningError": "engine.errors",
    "JobState": "scheduler.protocol.effects",
    "JobStatus": "scheduler.protocol.status",
    "JobTimeoutError": "engine.errors",
    "KeyContext": "engine.functions.keyed_function",
    "KeyedFunction": "engine.functions.keyed_function",
    "JoinResults": "stream",
    "KeyedStream": "stream",
    "LatencyPolicy": "scheduler.policies.latency",
    "LoadSnapshot": "balancer.snapshot",
    "MetricsConfig": "scheduler.configs.run",
    "MigrationReport": "scheduler.protocol.reports",
    "NetworkConfig": "scheduler.configs.run",
    "NodeScalingReport": "scheduler.protocol.reports",
    "OperatorLoad": "scheduler.load.metrics",
    "Picture": "pictures.svg",
    "PidPolicy": "scheduler.policies.pid",
    "ProtocolError": "engine.errors",
    "QueueingPolicy": "scheduler.policies.queueing",
    "RecordError": "engine.errors",
    "RequestError": "engine.errors",
    "RestartConfig": "scheduler.configs.restart",
    "SavedCheckpoint": "saved_checkpoints",
    "SavedJob": "savepoint",
    "ScalingReport": "scheduler.protocol.reports",
    "UpgradePlan": "engine.plan.upgrade.verdicts",
    "UpgradeReport": "scheduler.protocol.reports",
    "UpgradeRolledBackError": "engine.errors",
    "UpgradeState": "scheduler.protocol.reports",
    "SettingChange": "scheduler.protocol.changed_settings",
    "Sink": "engine.sink",
    "SinkWriter": "engine.sink",
    "SnapshotError": "engine.errors",
    "Source": "engine.source",
    "SourceReader": "engine.source",
    "StateBackendError": "state.errors",
    "StateConfig": "scheduler.configs.run",
    "StateError": "state.errors",
    "Stela": "scheduler.policies.stela",
    "Stream": "stream",
    "ThresholdPolicy": "scheduler.policies.threshold",
    "Window": "engine.time.windows",
    "WindowedStream": "stream",
    "WorkerConfig": "scheduler.configs.worker",
    "WorkerFigures": "scheduler.load.metrics",
    "approx_distinct": "engine.aggregates.named.functions",
    "approx_quantile": "engine.aggregates.named.functions",
    "col": "engine.expressions.expression",
    "collect": "engine.aggregates.named.functions",
    "connect": "job",
    "count": "engine.aggregates.named.functions",
    "count_distinct": "engine.aggregates.named.functions",
    "first": "engine.aggregates.named.functions",
    "from_generator": "connectors.python.generator",
    "from_items": "connectors.python.items",
    "from_spark": "connectors.spark.source",
    "generate": "connectors.generated.generate",
    "last": "engine.aggregates.named.functions",
    "latest_checkpoint": "saved_checkpoints",
    "list_checkpoints": "saved_checkpoints",
    "list_state": "engine.functions.state_declarations",
    "lit": "engine.expressions.expression",
    "map_state": "engine.functions.state_declarations",
    "max": "engine.aggregates.named.functions",
    "max_by": "engine.aggregates.named.functions",
    "mean": "engine.aggregates.named.functions",
    "median": "engine.aggregates.named.functions",
    "min": "engine.aggregates.named.functions",
    "min_by": "engine.aggregates.named.functions",
    "nexmark": "connectors.nexmark.source",
    "print": "connectors.python.print_rows:print_rows",
    "quantile": "engine.aggregates.named.functions",
    "read_csv": "connectors.formats.csv",
    "read_delta": "connectors.delta.source",
    "read_iceberg": "connectors.iceberg.source",
    "read_json": "connectors.formats.json",
    "read_kafka": "connectors.kafka.reading.source",
    "read_parquet": "connectors.formats.parquet",
    "read_savepoint": "savepoint",
    "read_text": "connectors.formats.text",
    "rows": "engine.time.row_windows",
    "secret": "engine.secrets",
    "session": "engine.time.sessions",
    "always": "engine.joins.within",
    "between": "engine.joins.within",
    "sliding": "engine.time.windows",
    "sql": "sql_translation.statement",
    "stddev": "engine.aggregates.named.functions",
    "step": "engine.patterns.step",
    "sum": "engine.aggregates.named.functions",
    "to_callback": "connectors.python.callback_sink",
    "to_function": "connectors.python.function_sink",
    "to_list": "connectors.python.list_sink",
    "to_spark": "connectors.spark.sink",
    "top": "engine.aggregates.named.functions",
    "tumbling": "engine.time.windows",
    "value_state": "engine.functions.state_declarations",
    "variance": "engine.aggregates.named.functions",
    "when": "engine.expressions.expression",
    "write_csv": "connectors.formats.csv_sink",
    "write_delta": "connectors.delta.sink",
    "write_iceberg": "connectors.iceberg.sink",
    "write_json": "connectors.formats.json_sink",
    "write_kafka": "connectors.kafka.writing.sink",
    "write_parquet": "connectors.formats.parquet_sink",
    "write_sql": "connectors.sql.sink",
}
"""The module of each name, imported on first use: the command line's help must not wait for NumPy, Arrow and Ray."""

__all__ = [
    "Aggregate",
    "AutoscaleConfig",
    "BalanceConfig",
    "Batch",
    "BroadcastStream",
    "CheckpointConfig",
    "CheckpointReport",
    "CheckpointState",
    "ClusterError",
    "CoKeyedFunction",
    "ConnectorError",
    "CorruptStateError",
    "Dataflow",
    "DecisionRecord",
    "Dhalion",
    "Ds2",
    "EvenflowError",
    "Expression",
    "FlowError",
    "FunctionContext",
    "Job",
    "JobBusyError",
    "JobConfig",
    "JobError",
    "JobFailedError",
    "JobLostError",
    "JobNotRunningError",
    "JobState",
    "JobStatus",
    "JobTimeoutError",
    "JoinResults",
    "KeyContext",
    "KeyedFunction",
    "KeyedStream",
    "LatencyPolicy",
    "LoadSnapshot",
    "MetricsConfig",
    "MigrationReport",
    "NetworkConfig",
    "NodeScalingReport",
    "OperatorLoad",
    "Picture",
    "PidPolicy",
    "ProtocolError",
    "QueueingPolicy",
    "RecordError",
    "RequestError",
    "RestartConfig",
    "SavedCheckpoint",
    "SavedJob",
    "ScalingReport",
    "SettingChange",
    "Sink",
    "SinkWriter",
    "SnapshotError",
    "Source",
    "SourceReader",
    "StateBackendError",
    "StateConfig",
    "StateError",
    "Stela",
    "Stream",
    "ThresholdPolicy",
    "UpgradePlan",
    "UpgradeReport",
    "UpgradeRolledBackError",
    "UpgradeState",
    "Window",
    "WindowedStream",
    "WorkerConfig",
    "WorkerFigures",
    "always",
    "approx_distinct",
    "approx_quantile",
    "between",
    "col",
    "collect",
    "connect",
    "count",
    "count_distinct",
    "first",
    "from_generator",
    "from_items",
    "from_spark",
    "generate",
    "last",
    "latest_checkpoint",
    "list_checkpoints",
    "list_state",
    "lit",
    "map_state",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "min_by",
    "nexmark",
    "print",
    "quantile",
    "read_csv",
    "read_delta",
    "read_iceberg",
    "read_json",
    "read_kafka",
    "read_parquet",
    "read_savepoint",
    "read_text",
    "rows",
    "secret",
    "session",
    "sliding",
    "sql",
    "stddev",
    "step",
    "sum",
    "to_callback",
    "to_function",
    "to_list",
    "to_spark",
    "top",
    "tumbling",
    "value_state",
    "variance",
    "when",
    "write_csv",
    "write_delta",
    "write_iceberg",
    "write_json",
    "write_kafka",
    "write_parquet",
    "write_sql",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, there = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), there or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
