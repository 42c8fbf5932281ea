"""Conversion of batches to messages, and the writer of Kafka sinks that sends them as they arrive."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....engine.batch import Batch
from ....engine.errors import RecordError
from ....engine.sink import SinkWriter
from ..cluster import KafkaCluster
from ..values.encoding import Encoding
from .sending import Sender, kafka_error
from .upserts import Upserts

OVERHEAD = 128
"""The most bytes of a message apart from its key, its value and its headers."""


class Messages:
    """A converter of batches to messages. `most_bytes`: of one message. `upserts`: rows have weights, which are staged too."""

    def __init__(self, encoding: Encoding, most_bytes: int, *, upserts: bool = False) -> None:
        self._encoding, self._most_bytes = encoding, most_bytes
        self._messages = Upserts(encoding).staged if upserts else _messages(encoding)

    def of(self, batch: Batch) -> pa.RecordBatch:
        """Encode a batch. Raises ConnectorError for an unencodable type, RecordError for such a value or a message that is too
        large.
        """
        messages = self._messages(batch)
        if messages.get_total_buffer_size() > self._most_bytes:
            self._check_sizes(batch, messages)
        return messages

    def _check_sizes(self, batch: Batch, messages: pa.RecordBatch) -> None:
        sizes = pa.nulls(messages.num_rows, pa.int64()).fill_null(OVERHEAD)
        for column in messages.columns[: 2 + len(self._encoding.headers)]:
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


def _messages(encoding: Encoding) -> Callable[[Batch], pa.RecordBatch]:
    return lambda batch: encoding.messages(batch.rows)


class SendingWriter(SinkWriter):
    """A writer that sends messages as they arrive. At a checkpoint all of them have been delivered."""

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
