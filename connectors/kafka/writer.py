"""The writers of Kafka sinks: one stages messages for the commit of their checkpoint, one sends them as they come."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...engine.batch import Batch
from ...engine.errors import ConnectorError, RecordError
from ...engine.sink import SinkWriter
from .cluster import KafkaCluster
from .encoding import Encoding
from .sending import Sender, kafka_error
from .staging import Place, StagedFile, Staging

OVERHEAD = 128
"""Bytes of a message beside its key, its value and its headers, at most."""


class Messages:
    """Makes messages of batches. `most_bytes`: of one message."""

    def __init__(self, encoding: Encoding, most_bytes: int) -> None:
        self._encoding, self._most_bytes = encoding, most_bytes

    def of(self, batch: Batch) -> pa.RecordBatch:
        """Raises ConnectorError for a type without a form, RecordError for a value without one, or a message that is too large."""
        messages = self._encoding.messages(batch.rows)
        if messages.get_total_buffer_size() > self._most_bytes:
            self._check_sizes(batch, messages)
        return messages

    def _check_sizes(self, batch: Batch, messages: pa.RecordBatch) -> None:
        sizes = pa.nulls(messages.num_rows, pa.int64()).fill_null(OVERHEAD)
        for column in messages.columns:
            sizes = pc.add(sizes, pc.fill_null(pc.binary_length(column), 0))
        largest = pc.max(sizes).as_py()
        if largest is not None and largest > self._most_bytes:
            place = pc.index(sizes, largest).as_py()
            record = None if messages.num_rows != batch.num_rows else f"row {batch.slice(place, 1).to_rows()[0]!r:.1000}"
            problem = (
                f"a message has {largest:,} bytes, and topic and producer take {self._most_bytes:,}; make it smaller, or raise the topic's "
                'max.message.bytes and options={"message.max.bytes": ...}'
            )
            raise RecordError(self._encoding.operator, problem, key=messages.column(0)[place].as_py(), record=record)


class StagingWriter(SinkWriter):
    """Writes files of about `most_rows` messages and `most_bytes` bytes, and seals them at each checkpoint."""

    def __init__(self, messages: Messages, place: Place, operator: str, most_rows: int, most_bytes: int) -> None:
        self._messages, self._place, self._operator = messages, place, operator
        self._staging = Staging(place.staging)
        self._most_rows, self._most_bytes = most_rows, most_bytes
        self._stem, self._count = f"{place.run}-{uuid.uuid4().hex[:12]}", 0
        self._held: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._files: list[StagedFile] = []

    def write(self, batch: Batch) -> None:
        if batch.num_rows:
            for piece in self._pieces(self._messages.of(batch)):
                self._held.append(piece)
                self._rows, self._bytes = self._rows + piece.num_rows, self._bytes + piece.nbytes
                if self._rows >= self._most_rows or self._bytes >= self._most_bytes:
                    self._write_file()

    def prepare(self, checkpoint: int) -> list[Any]:
        self._write_file()
        files, self._files = self._files, []
        with self._explained():
            self._staging.seal(files)
        return [{**self._place._asdict(), "files": [file.entry() for file in files]}] if files else []

    def close(self) -> None:
        self._staging.abandon(file.name for file in self._files)
        self._files, self._held = [], []

    def _pieces(self, messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """`messages` in pieces that fit into a file."""
        parts = max(messages.num_rows / self._most_rows, messages.nbytes / self._most_bytes, 1)
        rows = max(1, int(messages.num_rows / parts))
        return (messages.slice(first, rows) for first in range(0, messages.num_rows, rows))

    def _write_file(self) -> None:
        if self._held:
            with self._explained():
                self._files.append(self._staging.write(f"{self._stem}-{self._count:08d}", self._held))
            self._held, self._rows, self._bytes = [], 0, 0
            self._count += 1

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise ConnectorError(f"operator `{self._operator}`: can't write into {self._staging.url}: {error}") from error


class SendingWriter(SinkWriter):
    """Sends messages as they come. At a checkpoint all of them have been delivered."""

    def __init__(self, messages: Messages, cluster: KafkaCluster, topic: str, sender: Sender) -> None:
        self._messages, self._cluster, self._topic, self._sender = messages, cluster, topic, sender

    def write(self, batch: Batch) -> None:
        if batch.num_rows:
            with self._explained():
                self._sender.send(self._messages.of(batch))

    def prepare(self, checkpoint: int) -> list[Any]:
        with self._explained():
            self._sender.flush()
        return []

    def close(self) -> None:
        self._sender.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        from confluent_kafka import KafkaException

        try:
            yield
        except (KafkaException, SystemError) as error:
            what = f"a message with the key {self._sender.failed_key!r} can't be delivered to topic `{self._topic}`"
            raise self._cluster.error(kafka_error(error), what) from error
