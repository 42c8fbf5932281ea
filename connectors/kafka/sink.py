"""The sink into a topic of Kafka: messages become visible to readers of committed messages with their checkpoint.

Exactly once: workers stage messages in the job's checkpoint folder (`writer.py`, `staging.py`). When the checkpoint is complete, a process
beside the coordinator (`commit_process.py`) produces them in transactions that also move a marker (`producing.py`, `marker.py`). So no
transaction is open between preparing and committing: no time-out loses rows, and readers never wait for a slow checkpoint.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from ...engine.columns import Columns
from ...engine.errors import FlowError
from ...engine.sink import Sink, SinkWriter
from ..claim import Claim, dead_runs, owner_file
from .cluster import KafkaCluster, check_installed
from .commit_process import CommitProcess
from .encoding import Encoding, Format
from .marker import producer_id, write_first_marker
from .sending import PARTITIONERS, Sender
from .staging import Place, Staged, StagedFile, Staging, chunks
from .writer import Messages, SendingWriter, StagingWriter

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once", "at_least_once"

MESSAGE_BYTES = 1_000_000
"""The largest message where neither the options nor the topic say otherwise: librdkafka's default."""

REFRESH_SECONDS = 3600.0
"""How often the marker is written while no messages come: brokers forget it after `offsets.retention.minutes`, 7 days by default."""


def write_kafka(
    topic: str,
    *,
    bootstrap: str,
    key: str | Sequence[str] | None = None,
    format: Format = "json",  # noqa: A002 -- as in read_kafka
    headers: Mapping[str, str] | None = None,
    partitioner: Literal["murmur2", "crc32", "random"] = "murmur2",
    guarantee: Literal["exactly_once", "at_least_once"] = "exactly_once",
    options: Mapping[str, Any] | None = None,
    name: str = "write_kafka",
) -> KafkaSink:
    """Rows as messages to a topic of Kafka, exactly once.

        orders.write(ef.write_kafka("orders", bootstrap="localhost:9092", key="user"))

    writes each row as a JSON object with the key of its user. Readers with `isolation.level=read_committed` see a row when its checkpoint
    is complete (`JobConfig(checkpoint=ef.CheckpointConfig(dir, interval="1s"))`), and never twice. The topic must exist.

    `bootstrap` are brokers, "host:9092,other:9092"; `options` are librdkafka's, such as {"security.protocol": "SASL_SSL", ...} or
    {"compression.type": "zstd"}. Needs `pip install 'evenflow[kafka]'`.

    `format`: "json" is what `write_json` writes; "raw" writes the bytes of the column `value`, null as a tombstone; "text" the strings of
    that column; "arrow" up to 65,536 rows as one Arrow IPC stream, for readers that want columns (no key, no headers).
    `key` is a column: bytes and strings as they are, integers, bools, decimals and times as text; or several, as a JSON object. A null is
    a message without a key. `headers` maps names of headers to columns, which are written as a single key is; a null leaves the header out.
    `partitioner` says which partition a key belongs to: "murmur2" as Java's client, "crc32" as librdkafka, "random" for none.

    With `guarantee="exactly_once"` rows are written twice: to the checkpoint folder, which all workers reach, and to Kafka when the
    checkpoint is complete. A large checkpoint becomes visible in several transactions. `"at_least_once"` sends rows as they come, with less
    delay, and rows since the last checkpoint again after a recovery.

    Raises FlowError for wrong arguments, ConnectorError when the flow starts if no broker answers or the topic isn't there.
    """
    return KafkaSink(
        topic,
        KafkaCluster(bootstrap, dict(options or {}), name),
        Encoding(format, tuple(key) if isinstance(key, Sequence) and not isinstance(key, str) else key, dict(headers or {}), name),
        partitioner,
        guarantee,
    )


class KafkaSink(Sink):
    """See `write_kafka`."""

    file_rows, file_bytes = 50_000, 16 << 20
    """Of one staged file, about."""

    chunk_rows, chunk_bytes = 200_000, 32 << 20
    """Of one transaction, at most: it takes seconds, and `transaction.timeout.ms` is a minute."""

    def __init__(self, topic: str, cluster: KafkaCluster, encoding: Encoding, partitioner: str, guarantee: str) -> None:
        self.name = cluster.operator
        if not isinstance(topic, str) or not topic:
            raise FlowError(f"operator `{self.name}`: topic is {topic!r}; it must be a topic's name")
        if partitioner not in PARTITIONERS:
            raise FlowError(f"operator `{self.name}`: partitioner={partitioner!r}; expected one of {', '.join(PARTITIONERS)}")
        if guarantee not in (EXACTLY_ONCE, AT_LEAST_ONCE):
            raise FlowError(f"operator `{self.name}`: guarantee={guarantee!r}; expected {EXACTLY_ONCE!r} or {AT_LEAST_ONCE!r}")
        for option, value in cluster.options.items():
            if not isinstance(value, (str, int, float, bool)):
                raise FlowError(f"operator `{self.name}`: options={{{option!r}: {value!r}}}: expected a string, a number or a bool")
        check_installed(self.name)
        self._topic, self._cluster, self._encoding, self._partitioner = topic, cluster, encoding, partitioner
        self._exact = guarantee == EXACTLY_ONCE
        self.guarantee = (
            "exactly once (for readers of committed messages, when the checkpoint that holds them completes)"
            if self._exact
            else "at least once (messages since the last checkpoint come again after a recovery)"
        )
        self._temporary: str | None = None
        self._most_bytes = int(cluster.options.get("message.max.bytes", MESSAGE_BYTES))
        self.run = uuid.uuid4().hex[:12]
        self._process: CommitProcess | None = None
        self._claim: Claim | None = None
        self._marked_at: float | None = None
        self.of_job("job", self.name, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_process": None, "_claim": None, "_marked_at": None}

    def of_job(self, job: str, operator: str, checkpoints: str | None) -> None:
        self._producer = producer_id(job, operator)
        self._temporary = None if checkpoints is not None else f"{tempfile.gettempdir()}/evenflow-kafka-{uuid.uuid4().hex}"
        self._staging = self._temporary or f"{checkpoints}/staged-{operator}"

    def problem(self, columns: Columns) -> str | None:
        return self._encoding.problem(columns)

    def start(self) -> None:
        from confluent_kafka import KafkaException

        self.run, self._marked_at = uuid.uuid4().hex[:12], None
        self._cluster.partitions([self._topic])
        if "message.max.bytes" not in self._cluster.options:
            self._most_bytes = self._cluster.most_message_bytes(self._topic) or MESSAGE_BYTES
        if self._exact:
            try:
                write_first_marker(self._cluster, self._topic, self._producer, self.run)
            except KafkaException as error:
                raise self._cluster.error(error.args[0], f"topic `{self._topic}`: the run's marker can't be written") from error

    def stop(self) -> None:
        """Remove what killed workers of this run never sealed; without a checkpoint folder everything."""
        self._end_process()
        if self._claim is not None:
            self._claim.release()
            self._claim = None
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                self._remove_run(Staging(self._staging), self.run, keep=None)

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        messages = Messages(self._encoding, self._most_bytes)
        if self._exact:
            return StagingWriter(messages, self._place, self.name, self.file_rows, self.file_bytes)
        sender = Sender(self._cluster, self._topic, self._partitioner, self._most_bytes, enable_idempotence=True)
        return SendingWriter(messages, self._cluster, self._topic, sender)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        """Messages that a job has staged which this one goes on from go where that one would have put them, whatever its guarantee is."""
        staged = [Staged(**each) for each in committables]
        for place in sorted({each.place for each in staged}):
            files = [StagedFile.of(entry) for each in staged if each.place == place for entry in each.files]
            self._commit(checkpoint, place, files)
        if not staged and self._exact and self._marker_is_due:
            self._commit(checkpoint, self._place, [])
        return []

    def _commit(self, checkpoint: int, place: Place, files: list[StagedFile]) -> None:
        parts = [[file.entry() for file in part] for part in chunks(files, self.chunk_rows, self.chunk_bytes)]
        request = {"run": place.run, "checkpoint": checkpoint, "chunks": parts, "begun": self._exact}
        self._committing(place).commit(request)
        self._marked_at = time.monotonic()
        with contextlib.suppress(OSError):  # the sweep of a later job removes what stays
            Staging(place.staging).remove(file.name for file in files)

    @property
    def retractable(self) -> bool:
        """What is in a topic stays there. What is written at least once is never committed."""
        return not self._exact

    def sweep(self) -> None:
        """What is sealed and not committed belongs to old attempts."""
        staging = Staging(self._staging)
        staging.remove(staging.names(self.run))

    def take_over(self, job: str, needed: Callable[[], Sequence[Any] | None]) -> None:
        """Only on a local file system, where a lock tells whether a run is alive."""
        folder = Staging(self._staging).folder
        if folder is None or self._temporary is not None or not self._exact:
            return
        folder.mkdir(parents=True, exist_ok=True)
        self._claim = self._claim or Claim(folder, self.run, job)
        for run in dead_runs(folder, job):
            committables = needed()
            if committables is not None:
                files = [entry for each in committables if isinstance(each, dict) for entry in each.get("files", ())]
                self._remove_run(Staging(self._staging), run, {name for name, *_ in files})

    def _remove_run(self, staging: Staging, run: str, keep: Collection[str] | None) -> None:
        """Remove the files of a run that is over, except the sealed ones to keep (None: all of them)."""
        staging.remove_hidden(run)
        names = staging.names(run)
        kept = [name for name in names if keep is None or name in keep]
        staging.remove(name for name in names if name not in kept)
        if not kept and staging.folder is not None:
            owner_file(staging.folder, run).unlink(missing_ok=True)

    @property
    def _marker_is_due(self) -> bool:
        return self._marked_at is None or time.monotonic() > self._marked_at + REFRESH_SECONDS

    @property
    def _place(self) -> Place:
        return Place(self._staging, self._topic, self._producer, self.run)

    def _committing(self, place: Place) -> CommitProcess:
        """The process that commits what belongs there; one for another place ends."""
        if self._process is None or self._process.place != place:
            self._end_process()
            cluster = {"bootstrap": self._cluster.bootstrap, "options": dict(self._cluster.options), "operator": self.name}
            target = {"topic": place.topic, "producer": place.producer, "partitioner": self._partitioner, "most_bytes": self._most_bytes}
            self._process = CommitProcess(self.name, place, {"cluster": cluster, "target": target, "staging": place.staging})
        return self._process

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None
