"""The sink into a Kafka topic: messages become visible to readers of committed messages with their checkpoint.

Exactly once: workers stage messages in the job's checkpoint folder (`staged_sink.py`). When the checkpoint is complete, a
separate process (`commit_process.py`) produces them in transactions that also advance a marker (`producing.py`, `marker.py`). So
no transaction is open between preparing and committing: no time-out loses rows, and readers never wait for a slow checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from ....engine.columns import Columns
from ....engine.errors import FlowError
from ....engine.sink import Sink, SinkWriter
from ....engine.updates import Updates
from ....engine.weights import WEIGHT
from ...avro import schema as avro
from ...avro.registry import SchemaRegistry
from ...avro.schema import AvroLike
from ...staged.staged_sink import OF_RUN, StagedSink
from ...staged.staging import StagedFile, StagingPlace, chunks
from ...staged.staging_writer import StagingWriter
from ..cluster import KafkaCluster, check_installed
from ..values.avro_rows import AvroRows
from ..values.encoding import Encoding, Format
from .commit_process import CommitProcess
from .marker import producer_id, write_first_marker
from .sending import PARTITIONERS, Sender
from .upserts import CHUNK_BYTES, CHUNK_ROWS, KIND
from .writer import Messages, SendingWriter

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once", "at_least_once"

MESSAGE_BYTES = 1_000_000
"""The largest message if neither the options nor the topic set a limit: librdkafka's default."""

REFRESH_SECONDS = 3600.0
"""Seconds after which the marker is written again if no messages arrive.

Brokers drop it after `offsets.retention.minutes`, 7 days by default.
"""


def write_kafka(
    topic: str,
    *,
    bootstrap: str,
    mode: Literal["append", "upsert"] = "append",
    key: str | Sequence[str] | None = None,
    format: Format = "json",  # noqa: A002 -- as in read_kafka
    schema: AvroLike | None = None,
    registry: str | None = None,
    headers: Mapping[str, str] | None = None,
    partitioner: Literal["murmur2", "crc32", "random"] = "murmur2",
    guarantee: Literal["exactly_once", "at_least_once"] = "exactly_once",
    options: Mapping[str, Any] | None = None,
    name: str = "write_kafka",
) -> KafkaSink:
    """Write rows as messages to a Kafka topic, exactly once.

        orders.write(ef.write_kafka("orders", bootstrap="localhost:9092", key="user"))

    writes each row as a JSON object with the key of its user. Readers with `isolation.level=read_committed` see a row when its
    checkpoint is complete (`JobConfig(checkpoint=ef.CheckpointConfig(dir, interval="1s"))`), and never twice. The topic must
    exist.

    `bootstrap` lists brokers, "host:9092,other:9092"; `options` are librdkafka's, such as {"security.protocol": "SASL_SSL", ...}
    or {"compression.type": "zstd"}. Needs `pip install 'evenflow[kafka]'`.

    `format`: "json" writes objects as `write_json` does; "raw" writes the bytes of the column `value`, null as a tombstone;
    "text" the strings of that column; "arrow" up to 65,536 rows as one Arrow IPC stream, for readers that want columns (no key,
    no headers); "avro" each row as an Avro datum of `schema`, an Avro schema as JSON text or as a dict. With `registry`,
    "http://host:8081" or "https://user:password@host", messages name their schema in that registry (Confluent's wire format):
    `schema`, which is registered for the subject `TOPIC-value` when the flow starts, or else the newest one of that subject.
    `key` is a column (bytes and strings unchanged; integers, bools, decimals and times as text) or several, as a JSON object. A
    null key gives a message without a key. `headers` maps names of headers to columns, which are written like a single key; a
    null omits the header. `partitioner` assigns keys to partitions: "murmur2" as Java's client, "crc32" as librdkafka, "random"
    for none.

    With `mode="upsert"` the topic has a message for each present row of a stream of updates, as Flink's upsert-kafka: each checkpoint
    adds the newest row of each `key` that changed, and a tombstone, a message without a value, for a key that is gone: a group
    without rows, or one that a filter no longer passes. `key` must contain the key of the updates. The default writes each update
    as a message.

    With `guarantee="exactly_once"` rows are written twice: to the checkpoint folder, which all workers must access, and to Kafka
    when the checkpoint is complete. A large checkpoint becomes visible in several transactions. `"at_least_once"` sends rows as
    they arrive, with less delay, and repeats rows since the last checkpoint after a recovery.

    Raises FlowError for wrong arguments, ConnectorError when the flow starts if no broker answers or the topic doesn't exist.
    """
    if mode not in ("append", "upsert"):
        raise FlowError(f'operator `{name}`: mode={mode!r}; expected "append" or "upsert"')
    return KafkaSink(
        topic,
        KafkaCluster(bootstrap, dict(options or {}), name),
        Encoding(
            format,
            tuple(key) if isinstance(key, Sequence) and not isinstance(key, str) else key,
            dict(headers or {}),
            name,
            _avro_rows(format, schema, registry, name),
        ),
        partitioner,
        guarantee,
        upserts=mode == "upsert",
    )


def _no_upserts(encoding: Encoding, partitioner: str, guarantee: str) -> str | None:
    """Return why messages with these settings can't replace earlier ones, or None if they can."""
    if not encoding.keys:
        return "goes with key=, the columns of the message's key"
    if partitioner == "random":
        return 'needs all messages of a key in one partition: take partitioner="murmur2" or "crc32"'
    if guarantee != EXACTLY_ONCE:
        return (
            'needs guarantee="exactly_once": rows of a key that moves to another worker have no order before their checkpoint is complete'
        )
    return None


def _avro_rows(form: str, schema: AvroLike | None, registry: str | None, name: str) -> AvroRows | None:
    if form != "avro":
        if schema is not None or registry is not None:
            raise FlowError(f'operator `{name}`: schema= and registry= are for format="avro", and this is format={form!r}')
        return None
    avro.check_installed(name)
    if schema is None and registry is None:
        raise FlowError(f'operator `{name}`: format="avro" needs schema=, an Avro schema, or registry=, which has one')
    given = None if schema is None else avro.given_schema(schema, name)
    return AvroRows(given, None if registry is None else SchemaRegistry(registry, name), name)


class KafkaSink(StagedSink):
    """The sink that `write_kafka` creates."""

    chunk_rows, chunk_bytes = CHUNK_ROWS, CHUNK_BYTES

    def __init__(
        self, topic: str, cluster: KafkaCluster, encoding: Encoding, partitioner: str, guarantee: str, *, upserts: bool = False
    ) -> None:
        operator = cluster.operator
        if not isinstance(topic, str) or not topic:
            raise FlowError(f"operator `{operator}`: topic is {topic!r}; it must be a topic's name")
        if partitioner not in PARTITIONERS:
            raise FlowError(f"operator `{operator}`: partitioner={partitioner!r}; expected one of {', '.join(PARTITIONERS)}")
        if guarantee not in (EXACTLY_ONCE, AT_LEAST_ONCE):
            raise FlowError(f"operator `{operator}`: guarantee={guarantee!r}; expected {EXACTLY_ONCE!r} or {AT_LEAST_ONCE!r}")
        for option, value in cluster.options.items():
            if not isinstance(value, (str, int, float, bool)):
                raise FlowError(f"operator `{operator}`: options={{{option!r}: {value!r}}}: expected a string, a number or a bool")
        if upserts and (problem := _no_upserts(encoding, partitioner, guarantee)) is not None:
            raise FlowError(f'operator `{operator}`: mode="upsert" {problem}')
        check_installed(operator)
        super().__init__(operator, topic)
        self._topic, self._cluster, self._encoding, self._partitioner = topic, cluster, encoding, partitioner
        self._exact, self.reads_weights = guarantee == EXACTLY_ONCE, upserts
        self.guarantee = (
            "exactly once (for readers of committed messages, when the checkpoint that holds them completes)"
            if self._exact
            else "at least once (messages since the last checkpoint arrive again after a recovery)"
        )
        self._most_bytes = int(cluster.options.get("message.max.bytes", MESSAGE_BYTES))
        self._process: CommitProcess | None = None
        self._marked_at: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_process": None, "_marked_at": None}

    @property
    def may_change(self) -> frozenset[str]:  # type: ignore[override]
        """The settings that only writers use. Staged messages are sent by the process that commits, as the older sink says."""
        return frozenset({"format", "headers"} if self._exact else {"format", "headers", "key", "partitioner", "options"})

    def given_settings(self) -> dict[str, Any]:
        given = self.settings_without("_encoding", "_cluster", "_process", "_marked_at", "_most_bytes", *OF_RUN)
        encoding = {name: getattr(self._encoding, name) for name in ("format", "key", "headers", "avro")}
        return {**given, **encoding, "bootstrap": self._cluster.bootstrap, "options": dict(self._cluster.options)}

    def continues(self, other: Sink) -> str | None:
        """Refuse Avro, whose schema is registered when the sink starts."""
        return None if self._encoding.avro is None else 'format="avro" registers its schema when the sink starts'

    def continuing(self, other: Sink) -> Sink:
        assert isinstance(other, KafkaSink)
        sink = super().continuing(other)
        assert isinstance(sink, KafkaSink)
        sink._most_bytes = other._most_bytes  # noqa: SLF001 -- a copy of this one
        return sink

    def problem(self, columns: Columns) -> str | None:
        return self._encoding.problem(replace(columns, types={name: kind for name, kind in columns.types.items() if name != WEIGHT}))

    def problem_of(self, updates: Updates | None) -> str | None:
        if not self.reads_weights:
            return None
        if updates is None:
            return 'mode="upsert" is for updates, and these rows replace none: this stream is append-only; leave mode= out'
        if not updates.weighed:
            return (
                'mode="upsert" needs to know which rows were replaced: it takes updates of a running aggregate, behind select, drop, '
                "rename, cast, explode, union, and filter, branch, map, flat_map and key_by with a function (no class) and "
                'on_error="stop"; write it there, or leave mode= out: then each update is a message'
            )
        return updates.confused_by(self._encoding.keys)

    def start(self) -> None:
        from confluent_kafka import KafkaException

        super().start()
        self._marked_at = None
        self._cluster.partitions([self._topic])
        if self._encoding.avro is not None:
            self._encoding = replace(self._encoding, avro=self._encoding.avro.settled(f"{self._topic}-value"))
        if "message.max.bytes" not in self._cluster.options:
            self._most_bytes = self._cluster.most_message_bytes(self._topic) or MESSAGE_BYTES
        if self._exact:
            try:
                write_first_marker(self._cluster, self._topic, producer_id(self._identity), self.run)
            except KafkaException as error:
                raise self._cluster.error(error.args[0], f"topic `{self._topic}`: the run's marker can't be written") from error

    def stop(self) -> None:
        self._end_process()
        super().stop()

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        messages = Messages(self._encoding, self._most_bytes, upserts=self.reads_weights)
        if self._exact:
            kind = KIND if self.reads_weights else ""
            return StagingWriter(messages.of, self.place, self.name, self.file_rows, self.file_bytes, kind)
        sender = Sender(self._cluster, self._topic, self._partitioner, self._most_bytes, enable_idempotence=True)
        return SendingWriter(messages, self._cluster, self._topic, sender)

    def write_staged(self, checkpoint: int, place: StagingPlace, files: Sequence[StagedFile]) -> None:
        """Commit staged messages, independent of this sink's guarantee and mode: the previous job may have had others."""
        parts = [[file.entry() for file in part] for part in chunks(files, self.chunk_rows, self.chunk_bytes)]
        upserts = any(file.name.startswith(f"{place.run}-{KIND}-") for file in files)
        self._committing(place).commit(
            {"run": place.run, "checkpoint": checkpoint, "chunks": parts, "upserts": upserts, "begun": self._exact}
        )
        self._marked_at = time.monotonic()

    def nothing_staged(self, checkpoint: int) -> None:
        if self._exact and (self._marked_at is None or time.monotonic() > self._marked_at + REFRESH_SECONDS):
            self.write_staged(checkpoint, self.place, [])

    @property
    def retractable(self) -> bool:
        """True without commits: committed messages stay in the topic, and at-least-once messages are never committed."""
        return not self._exact

    def take_over(self, job: str, needed: Callable[[], Sequence[Any] | None]) -> None:
        if self._exact:
            super().take_over(job, needed)

    def _committing(self, place: StagingPlace) -> CommitProcess:
        """Return the process that commits to this place, after ending one for another place."""
        if self._process is None or self._process.place != place:
            self._end_process()
            cluster = {"bootstrap": self._cluster.bootstrap, "options": dict(self._cluster.options), "operator": self.name}
            target = {
                "topic": place.target, "producer": producer_id(place.sink), "partitioner": self._partitioner, "most_bytes": self._most_bytes
            }  # fmt: skip
            self._process = CommitProcess(self.name, place, {"cluster": cluster, "target": target, "staging": place.staging})
        return self._process

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None
