"""The connectors of CREATE TABLE ... WITH (...): Flink's names and options, as sources where a table is read and sinks where written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..connectors.formats.csv import read_csv
from ..connectors.formats.csv_sink import write_csv
from ..connectors.formats.json import read_json
from ..connectors.formats.json_sink import write_json
from ..connectors.formats.parquet import read_parquet
from ..connectors.formats.parquet_sink import write_parquet
from ..connectors.kafka.reading.source import read_kafka
from ..connectors.kafka.writing.sink import write_kafka
from ..connectors.nexmark.events import nexmark_events
from ..connectors.nexmark.source import nexmark
from ..connectors.python.discard import discard
from ..connectors.python.print_rows import print_rows
from ..connectors.sql.sink import write_sql
from ..engine.errors import FlowError
from ..engine.sink import Sink
from ..engine.source import Source
from .watermarks import Watermark


@dataclass(frozen=True)
class TableDefinition:
    """A table of CREATE TABLE. `schema`: its columns without those that are computed; `key`: its primary key."""

    name: str
    schema: pa.Schema
    options: Mapping[str, str]
    watermark: Watermark | None = None
    key: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()


_FORMER = {"connector.type": "connector", "connector.path": "path", "format.type": "format"}
"""The former names of Flink's options."""


_OF_FLINKS_FILES = ("sink.rolling-policy.", "sink.partition-commit.", "partition.time-extractor.")


class Options:
    """The options of a table, taken one by one; those that are left are unknown."""

    def __init__(self, table: TableDefinition) -> None:
        self._table = table.name
        self._left = {_FORMER.get(name.lower(), name.lower()): value for name, value in table.options.items()}

    def take(self, name: str, default: str | None = None) -> str | None:
        """Return an option, or the default."""
        return self._left.pop(name, default)

    def need(self, name: str) -> str:
        """Return an option. Raises FlowError without it."""
        found = self._left.pop(name, None)
        if found is None:
            raise FlowError(f"SQL: table `{self._table}` needs the option '{name}'")
        return found

    def chosen(self, name: str, choices: Mapping[str, Any], default: str | None = None) -> Any:
        """Return the choice that an option names. Raises FlowError for another."""
        found = self.need(name) if default is None else self._left.pop(name, default)
        if found not in choices:
            raise FlowError(f"SQL: table `{self._table}`: '{name}' is '{found}'; there are: {', '.join(choices)}")
        return choices[found]

    def done(self) -> None:
        """Raise FlowError for an option that nothing has taken."""
        if self._left:
            raise FlowError(f"SQL: table `{self._table}`: the options {', '.join(map(repr, self._left))} aren't supported")


def settled_by_checkpoints(table: TableDefinition) -> list[str]:
    """Return the options of a table that say when Flink closes files; here a checkpoint does."""
    return [name for name in table.options if table.options.get("connector") == "filesystem" and name.lower().startswith(_OF_FLINKS_FILES)]


def source_of(table: TableDefinition) -> Source:
    """Return the source of a table that a query reads. Raises FlowError for options that don't make one."""
    options = Options(table)
    kind = options.chosen("connector", {"kafka": _read_kafka, "filesystem": _read_files, "nexmark": _read_nexmark})
    source: Source = kind(table, options)
    options.done()
    return source


def sink_of(table: TableDefinition) -> Sink:
    """Return the sink of a table that INSERT INTO writes. Raises FlowError for options that don't make one."""
    options = Options(table)
    kinds: dict[str, Callable[[TableDefinition, Options], Sink]] = {
        "kafka": _write_kafka, "upsert-kafka": _upsert_kafka, "filesystem": _write_files, "jdbc": _write_jdbc,
        "print": _print, "blackhole": _discard,
    }  # fmt: skip
    sink = options.chosen("connector", kinds)(table, options)
    options.done()
    return sink  # type: ignore[no-any-return]


def _times(table: TableDefinition) -> dict[str, Any]:
    mark = table.watermark
    return {} if mark is None else {"event_time": mark.column, "max_delay": f"{mark.delay}us"}


def _read_kafka(table: TableDefinition, options: Options) -> Source:
    start = options.chosen("scan.startup.mode", {"earliest-offset": "earliest", "latest-offset": "latest"}, "earliest-offset")
    until = options.chosen("scan.bounded.mode", {"unbounded": None, "latest-offset": "now"}, "unbounded")
    values, idle = _kafka_values(table, options), options.take("scan.watermark.idle-timeout")
    return read_kafka(
        options.need("topic").split(";"),
        bootstrap=options.need("properties.bootstrap.servers"),
        start=start,
        until=until,
        group_id=options.take("properties.group.id"),
        idle_after=idle and idle.replace(" ", ""),
        name=table.name,
        **values,
        **_times(table),
    )


def _kafka_values(table: TableDefinition, options: Options) -> dict[str, Any]:
    """Return the arguments of `read_kafka` that say what the records' values are."""
    formats = ("json", "raw", "avro-confluent", "debezium-json", "debezium-avro-confluent")
    name = options.chosen("format", {name: name for name in formats})
    match name:
        case "json":
            return {"format": "json", "schema": table.schema}
        case "raw":
            kinds = {pa.string(): "text", pa.binary(): "raw"}
            if table.schema.names != ["value"] or table.schema.types[0] not in kinds:
                raise FlowError(f"SQL: table `{table.name}`: 'format' = 'raw' has one column, `value`, which is a STRING or BYTES")
            return {"format": kinds[table.schema.types[0]]}
        case "avro-confluent":
            return {"format": "avro", "registry": options.need(f"{name}.url")}
    if not table.key:
        raise FlowError(f"SQL: table `{table.name}`: {name} needs PRIMARY KEY (...) NOT ENFORCED, the key of the database's table")
    changes = {"format": "debezium", "schema": table.schema, "key": table.key}
    if name == "debezium-json":
        options.chosen("debezium-json.schema-include", {"true": True, "false": False}, "false")
        return changes
    return {**changes, "registry": options.need(f"{name}.url")}


def _read_files(table: TableDefinition, options: Options) -> Source:
    read = options.chosen("format", {"json": read_json, "csv": read_csv, "parquet": read_parquet})
    every = options.take("source.monitor-interval")
    follow = {} if every is None else {"follow": True, "poll_every": every.replace(" ", "")}
    in_files = [name for name in table.schema.names if name not in table.partitions]
    named = {"column_names": in_files} if read is read_csv else {}
    path = options.need("path").removeprefix("file://")
    return read(path, schema=table.schema, name=table.name, **named, **follow, **_times(table))  # type: ignore[no-any-return]


def _read_nexmark(table: TableDefinition, options: Options) -> Source:
    stream = options.take("stream")
    if stream is None:
        return _read_nexmark_events(table, options)
    numbers = {"events": int, "rate": float, "event_rate": float, "out_of_order_group_size": int, "seed": int, "rows_per_batch": int}
    given = {name: kind(value) for name, kind in numbers.items() if (value := options.take(name)) is not None}
    return nexmark(stream, name=table.name, **given)  # type: ignore[arg-type]


def _read_nexmark_events(table: TableDefinition, options: Options) -> Source:
    """Return the source of all events, with the options of nexmark/nexmark's generator."""
    for name, only in {
        "person.proportion": "1",
        "auction.proportion": "3",
        "bid.proportion": "46",
        "keep-alive": "false",
        "stop-at": "-1",
    }.items():
        options.chosen(name, {only: only}, only)
    rate, first = options.take("next-event.rate", "10000"), options.take("first-event.rate")
    if first not in (None, rate):
        raise FlowError(f"SQL: table `{table.name}`: 'first-event.rate' is '{first}': expected '{rate}', which 'next-event.rate' is")
    events = int(options.take("events.num", "0") or 0)
    truth = {"true": True, "false": False}
    fastest, limited = options.chosen("max-emit-speed", truth, "true"), options.chosen("rate.limited", truth, "false")
    pace = {"event_rate": float(rate or 0)} if fastest and not limited else {"rate": float(rate or 0)}
    return nexmark_events(events=events or None, name=table.name, **pace)


def _write_kafka(table: TableDefinition, options: Options) -> Sink:
    kind = options.chosen("format", {"json": "json"}, "json")
    return write_kafka(
        options.need("topic"), bootstrap=options.need("properties.bootstrap.servers"), format=kind, key=table.key or None, name=table.name
    )


def _upsert_kafka(table: TableDefinition, options: Options) -> Sink:
    """Return the sink of present rows. Keys are written as Flink's formats do: "raw" a column as it is, "json" an object of several."""
    if not table.key:
        raise FlowError(f"SQL: table `{table.name}`: upsert-kafka needs PRIMARY KEY (...) NOT ENFORCED, the columns of the messages' key")
    several = len(table.key) > 1
    if options.need("key.format") != ("json" if several else "raw"):
        wanted = "'json' for a key of several columns" if several else "'raw' for a key of one column"
        raise FlowError(f"SQL: table `{table.name}`: write 'key.format' = {wanted}")
    options.chosen("value.format", {"json": "json"})
    options.chosen("value.fields-include", {"ALL": "ALL"}, "ALL")
    return write_kafka(
        options.need("topic"), bootstrap=options.need("properties.bootstrap.servers"), mode="upsert", key=table.key, name=table.name
    )


def _write_files(table: TableDefinition, options: Options) -> Sink:
    for name in settled_by_checkpoints(table):
        options.take(name.lower())
    write = options.chosen("format", {"json": write_json, "csv": write_csv, "parquet": write_parquet})
    return write(options.need("path").removeprefix("file://"), partition_by=table.partitions, name=table.name)  # type: ignore[no-any-return]


def _write_jdbc(table: TableDefinition, options: Options) -> Sink:
    url = options.need("url").removeprefix("jdbc:")
    mode = {"mode": "upsert", "key": table.key} if table.key else {}
    return write_sql(url, options.need("table-name"), name=table.name, **mode)  # type: ignore[arg-type]


def _print(table: TableDefinition, options: Options) -> Sink:
    prefix = options.take("print-identifier")
    return print_rows("" if prefix is None else f"{prefix}> ", name=table.name)


def _discard(table: TableDefinition, _options: Options) -> Sink:
    return discard(name=table.name)
