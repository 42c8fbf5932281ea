"""The source of Kafka topics: exactly once by offsets in the checkpoint, without a consumer group."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal

from ....engine.columns import UNKNOWN, Columns
from ....engine.errors import ConnectorError, FlowError
from ....engine.functions.error_policy import OnError, check_on_error
from ....engine.functions.rows_encoder import SchemaLike, arrow_schema
from ....engine.needed import Needed
from ....engine.protocol.elements import MAX_TIME
from ....engine.source import Source
from ....engine.table_changes import RESERVED
from ....engine.time.duration import Duration, seconds
from ....engine.time.event_time import EventTime
from ...avro import schema as avro
from ...avro.registry import SchemaRegistry
from ...avro.schema import AvroLike
from ...quiet import event_time_of, idle_advice
from ..cluster import KafkaCluster, Problems, check_installed
from ..values.avro_values import AvroValues
from ..values.debezium import DebeziumValues
from ..values.debezium_avro import AvroEvents
from ..values.debezium_json import JsonEvents
from ..values.decoding import ArrowValues, Decoder, JsonValues, RawValues, TextValues, UndecodableError, Values
from ..values.record_columns import TIMESTAMP, RecordColumns
from .position import KafkaPosition, share_out_partitions
from .read_plan import OnLostOffsets, ReadPlan, Start, Until, check_bound, extents, sample
from .reader import KafkaReader
from .table import PLACES, check_table, table_columns, table_key
from .topics import Offsets, Topics
from .watch import ClusterWatch

_LOG = logging.getLogger(__name__)

CLIENT = {
    "fetch.queue.backoff.ms": 20,  # a second by default, in which a queue that was full runs empty
    "max.poll.interval.ms": 86_400_000,  # a worker that waits for others doesn't poll
}
"""Default options, which `options` may override."""

Format = Literal["json", "raw", "text", "arrow", "avro", "debezium"]


def read_kafka(
    topics: str | Sequence[str],
    *,
    bootstrap: str,
    start: Start = "earliest",
    until: Until = None,
    format: Format = "json",  # noqa: A002 -- the word that Spark and Flink have for it
    schema: SchemaLike | AvroLike = None,
    registry: str | None = None,
    key: str | Sequence[str] = (),
    event_time: str | None = None,
    unit: str = "ms",
    max_delay: Duration = 0,
    idle_after: Duration | None = None,
    columns: Sequence[str] = (),
    on_error: OnError = "stop",
    on_lost_offsets: OnLostOffsets = "stop",
    group_id: str | None = None,
    discover_every: Duration = "30s",
    options: Mapping[str, Any] | None = None,
    name: str = "read_kafka",
) -> KafkaSource:
    """Read the records of one or several Kafka topics, endlessly, or up to `until`.

        clicks = flow.read(ef.read_kafka("clicks", bootstrap="localhost:9092", event_time="at", max_delay="10s"))

    reads JSON objects, whose fields are the columns. Needs the extra `evenflow[kafka]`.

    `start`: "earliest"; "latest": records that arrive after the job began; a datetime: records whose timestamp isn't earlier; or
    offsets, `{partition: offset}` or `{(topic, partition): offset}`, where an unnamed partition is read from its beginning.
    `until`: None; "now": the records present when the job begins; a datetime; or offsets, exclusive. Both are resolved once; a
    job that resumes from a checkpoint or a savepoint continues at its offsets. Partitions that are added later are found within
    `discover_every` and read from their beginning, unless there is an `until`.

    `format`: "json", one object per record; "raw" and "text": one column `value`; "arrow": Arrow IPC, any number of rows per
    record; "avro": one datum per record. `schema` gives the columns of "json" and "arrow"; other fields of objects are ignored.
    Without it the columns are those of the first records, and another field is an error. Numbers and times of "json" are as in
    `read_json`: a record with one that its column can't hold can't be decoded. A record without a value (a tombstone)
    is a null in "raw" and "text", a row of nulls in "json" and "avro", no row in "arrow". `columns` adds columns to each row:
    "key", "value", "topic", "partition", "offset", "timestamp", "headers".

    For "avro" `schema` is an Avro schema, as JSON text or as a dict. `registry`, "http://host:8081" or
    "https://user:password@host", is the schema registry with the schemas that wrote the values (Confluent's wire format); each
    value is read into `schema`, by default the newest one of the subject `TOPIC-value`. Without a registry `schema` must be the
    one that wrote all values.

    "debezium" reads the changes of a database table as a stream of updates with deletions: in JSON, with or without the wrapper of
    schemas, or with a `registry` in Avro, where the keys of records are Avro, too. `key` names the columns of the table's primary
    key, by which the topic must be partitioned. `schema` gives the columns, as for "json"; without it the events' own schemas do,
    in Avro the newest one of the subject `TOPIC-value`. Aggregates, `changelog()`, and `mode="upsert"` of `write_sql` and
    `write_kafka` take the rows; what would not see a deletion is refused. The newest event of a key counts, so an event that comes
    again changes nothing.

    `event_time`: a column of the values, or "timestamp" for the records' own, if the values have no such column; `unit` and
    `max_delay` are as in `read_parquet`. Event time is the minimum over all partitions, so a partition without records holds it
    back. With `idle_after`, a partition that was read to its end and has been quiet for that long counts with the clock's time
    less `max_delay`. A later record on it is late if its event time is earlier, so use `idle_after` only for event times that
    follow the clock.

    `on_error`: what happens to a record that can't be decoded, or has no event time: "stop", "skip", or "dead_letter", which
    sends topic, partition, offset, key and value to `stream.dead_letters`. `on_lost_offsets`: what happens if the broker has
    deleted records before they were read: "stop", or "earliest" to continue after them. `group_id`: commit offsets to this group
    at each checkpoint, for tools that show lag; evenflow never reads them. `options` are librdkafka's, for example
    `{"security.protocol": "SASL_SSL", ...}`.

    Only records of committed transactions are read. Raises FlowError for wrong arguments; starting the flow raises ConnectorError
    if no broker answers, or a topic doesn't exist.
    """
    if on_lost_offsets not in {"stop", "earliest"}:
        raise FlowError(f'operator `{name}`: on_lost_offsets={on_lost_offsets!r}; expected "stop" or "earliest"')
    checked, keys = Topics.checked(topics, name), table_key(key, format, name)
    if format == "debezium":
        check_table(checked, event_time, columns, name)
        added = RecordColumns(PLACES, name, RESERVED)
    else:
        added = RecordColumns(columns, name)
    return KafkaSource(
        KafkaCluster(bootstrap, {**CLIENT, **(options or {})}, name),
        checked,
        start=start,
        until=until,
        decoder=_decoder(format, schema, registry, checked, keys, name),
        table_key=keys,
        event_time=event_time_of(event_time, unit, max_delay, idle_after, name=name, ends=None),
        columns=added,
        on_error=check_on_error(on_error, name),
        on_lost_offsets=on_lost_offsets,
        group_id=group_id,
        discover_every=seconds(discover_every, "discover_every"),
    )


def _decoder(
    format: str,  # noqa: A002 -- as above
    schema: SchemaLike | AvroLike,
    registry: str | None,
    topics: Topics,
    keys: tuple[str, ...],
    name: str,
) -> Decoder:
    known = None if registry is None else _known_registry(registry, format, name)
    if format == "avro":
        return _avro_decoder(schema, known, topics, name)
    if isinstance(schema, str):
        raise FlowError(f"operator `{name}`: schema={schema!r:.200}: expected an Arrow schema or a dict like {{'n': 'int64'}}")
    given = arrow_schema(schema, name)
    match format:
        case "json":
            return JsonValues(given)
        case "arrow":
            return ArrowValues(given, name)
        case "debezium":
            events = JsonEvents() if known is None else AvroEvents(known, topics.names[0])
            return DebeziumValues(table_columns(given, keys, name), keys, events)
        case "raw" | "text":
            if given is not None:
                raise FlowError(f'operator `{name}`: format="{format}" has one column, `value`, and takes no schema')
            return RawValues() if format == "raw" else TextValues()
        case _:
            raise FlowError(f'operator `{name}`: format={format!r}; expected "json", "raw", "text", "arrow", "avro" or "debezium"')


def _known_registry(registry: str, format: str, name: str) -> SchemaRegistry:  # noqa: A002 -- as above
    if format not in ("avro", "debezium"):
        raise FlowError(f'operator `{name}`: registry= is for format="avro" and format="debezium", and this is format={format!r}')
    avro.check_installed(name)
    return SchemaRegistry(registry, name)


def _avro_decoder(schema: Any, registry: SchemaRegistry | None, topics: Topics, name: str) -> Decoder:
    avro.check_installed(name)
    if schema is None and registry is None:
        raise FlowError(f'operator `{name}`: format="avro" needs schema=, the Avro schema that wrote the values, or registry=')
    given = None if schema is None else avro.given_schema(schema, name)
    return AvroValues(given, registry, [f"{topic}-value" for topic in topics.names], name)


def _warn(error: Any, _partitions: Sequence[Any]) -> None:
    """Log a failed commit of offsets to the group, as a callback of the client. Nothing depends on such commits."""
    if error is not None:
        _LOG.warning("offsets could not be committed for tools that show lag: %s", error)


class KafkaSource(Source):
    """A source whose readers divide the partitions by number; their positions are offsets."""

    guarantee = "exactly once (offsets in the checkpoint; only committed records)"
    split_word = "partition"
    may_change = frozenset({"group_id", "discover_every", "on_lost_offsets", "on_error", "options"})

    def __init__(
        self,
        cluster: KafkaCluster,
        topics: Topics,
        *,
        start: Start,
        until: Until,
        decoder: Decoder,
        table_key: tuple[str, ...] = (),
        event_time: EventTime | None,
        columns: RecordColumns,
        on_error: OnError,
        on_lost_offsets: OnLostOffsets,
        group_id: str | None,
        discover_every: float,
    ) -> None:
        self.name, self._cluster, self._topics, self.table_key = cluster.operator, cluster, topics, table_key
        self._start, self._until, self._decoder, self._columns = start, until, decoder, columns
        self._event_time, self._discover_every = event_time, discover_every
        self.on_error, self._on_lost_offsets, self._group_id = on_error, on_lost_offsets, group_id
        self.timed, self.time_column = event_time is not None, None if event_time is None else event_time.column
        self.idle_advice = idle_advice(event_time, "partition")
        self._plan: ReadPlan | None = None
        self.needed: Needed | None = None
        check_bound(start, ("earliest", "latest"), "start", topics, self.name)
        check_bound(until, ("now", None), "until", topics, self.name)
        if decoder.schema is not None:
            columns.check(decoder.schema, self.name)

    def reading(self, needed: Needed) -> KafkaSource:
        source = copy(self)
        source.needed = needed if self._event_time is None else needed.with_names([self._event_time.column])
        return source

    def given_settings(self) -> dict[str, Any]:
        given = self.settings_without("needed", "conditions", "idle_advice", "_plan", "_cluster")
        return {**given, "bootstrap": self._cluster.bootstrap, "options": dict(self._cluster.options)}

    def continues(self, other: Source) -> str | None:
        if self._decoder.schema is None and not self.reads_as(other):
            return "the columns were found when the job started, and it can't read others while the job runs; give them in schema="
        return None

    def continuing(self, other: Source) -> Source:
        assert isinstance(other, KafkaSource)
        source = copy(self)
        if (plan := other._plan) is not None:  # noqa: SLF001 -- another one of this class
            decoder, columns = (plan.decoder, plan.columns) if self.reads_as(other) else self._narrowed(self._decoder)
            source._plan = replace(  # noqa: SLF001 -- a copy of this one
                plan,
                cluster=self._cluster,
                decoder=decoder,
                columns=columns,
                on_error=self.on_error,
                on_lost_offsets=self._on_lost_offsets,
                group_id=self._group_id,
                discover_every=self._discover_every,
            )
        return source

    def start(self) -> None:
        check_installed(self.name)
        offsets = Offsets(self._cluster, self._topics)
        there = offsets.partitions()
        read = extents(there, self._start, self._until, self._topics, offsets, self.name)
        decoder = self._decoder
        if decoder.schema is None:
            decoder = self._inferred(lambda: sample(self._cluster, self._topics, read, offsets.ends(there), self._group))
        assert decoder.schema is not None
        self._columns.check(decoder.schema, self.name)
        by_timestamp = self._event_time is not None and self._event_time.column == TIMESTAMP and TIMESTAMP not in decoder.schema.names
        if self._event_time is not None and not by_timestamp:
            self._event_time.check(decoder.schema, self.name)
        decoder, columns = self._narrowed(decoder)
        idle = None if self._event_time is None else self._event_time.idle_after
        self._plan = ReadPlan(
            cluster=self._cluster,
            topics=self._topics,
            ids=offsets.ids(),
            extents=read,
            endless=self._until is None,
            decoder=decoder,
            columns=columns,
            event_time=self._event_time,
            by_timestamp=by_timestamp,
            idle_after=None if idle is None else idle / 1e6,
            on_error=self.on_error,
            on_lost_offsets=self._on_lost_offsets,
            group_id=self._group_id,
            discover_every=self._discover_every,
        )

    def reader(self, index: int, parallelism: int) -> KafkaReader:
        plan = self._plan
        if plan is None:
            raise ConnectorError(f"operator `{self.name}`: start() looks at the topics and must be called before reader()")
        problems = Problems()
        consumer = self._cluster.consumer(
            group_id=self._group,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            enable_partition_eof=True,
            isolation_level="read_committed",
            auto_offset_reset="error",
            on_commit=_warn,
            error_cb=problems,
        )
        return KafkaReader(plan, index, parallelism, consumer, ClusterWatch(plan, index, parallelism), problems)

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        shared = share_out_partitions([KafkaPosition.decode(position) for position in positions], parallelism, self.name)
        return [position.encode() for position in shared]

    def earliest(self, position: Any) -> int:
        return MAX_TIME if self._event_time is None else KafkaPosition.decode(position).earliest

    def known_columns(self) -> Columns:
        if self._plan is not None:
            decoder, columns = self._plan.decoder, self._plan.columns
        else:
            decoder, columns = self._narrowed(self._decoder)
        if decoder.schema is None:
            return UNKNOWN
        return Columns.of(decoder.schema).having({field.name: field.type for field in columns.schema})

    def describe(self) -> str:
        topics = f"topics {', '.join(self._topics.names)}"
        return topics if self.needed is None else f"{topics}, {self.needed.described}"

    def _narrowed(self, decoder: Decoder) -> tuple[Decoder, RecordColumns]:
        """Return the decoder and the metadata columns without columns that the flow never reads."""
        if self.needed is None or decoder.schema is None:
            return decoder, self._columns
        names = self.needed.among([*decoder.schema.names, *self._columns.names])
        metadata = [name for name in self._columns.names if name in names]
        return decoder.reading([name for name in decoder.schema.names if name in names]), RecordColumns(metadata, self.name)

    @property
    def _group(self) -> str:
        """The group's name, which the client requires even if no group is joined."""
        return self._group_id or f"evenflow-{self.name}"

    def _inferred(self, sample: Callable[[], Values]) -> Decoder:
        try:
            return self._decoder.inferred(sample)
        except UndecodableError as error:
            raise ConnectorError(
                f"operator `{self.name}`: the columns of {', '.join(self._topics.names)} aren't known: {error}; give them in schema={{...}}"
            ) from error
