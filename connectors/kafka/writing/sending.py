"""Sending of messages to a topic through one producer, and its errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from ..cluster import KafkaCluster, Problems

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

DELIVERY_SECONDS = 25
"""The deadline of a delivery, unless `message.timeout.ms` says otherwise."""

TURN = 1.0
"""Seconds between checks if a wait for all messages may continue."""

ROOM_SECONDS = 0.01
"""Seconds between checks for room in the producer's queue: only failures are reported, so a waiting thread isn't woken."""

FATAL_PATIENCE, FATAL_LOOK = 1.0, 0.02
"""Seconds within which a producer's fatal error becomes known, and between two checks for it."""

PARTITIONERS = {"murmur2": "murmur2_random", "crc32": "consistent_random", "random": "random"}
"""librdkafka's names of partitioners. All send messages without a key to any partition."""

_FINAL = frozenset(
    {
        "_AUTHENTICATION",
        "_FENCED",
        "_INVALID_ARG",
        "_SSL",
        "_UNKNOWN_PARTITION",
        "_UNKNOWN_TOPIC",
        "_UNSUPPORTED_FEATURE",
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_RECORD",
        "INVALID_TRANSACTION_TIMEOUT",
        "MSG_SIZE_TOO_LARGE",
        "PRODUCER_FENCED",
        "RECORD_LIST_TOO_LARGE",
        "SASL_AUTHENTICATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNKNOWN_TOPIC_OR_PART",
        "UNSUPPORTED_VERSION",
    }
)
"""Errors that a retry can't fix."""


def final(error: KafkaError) -> bool:
    """Return True if a retry would not help."""
    return error.name() in _FINAL


def kafka_error(raised: BaseException, transactional: Producer | None = None) -> KafkaError:
    """Extract the client's error from an exception. Raises the exception again if it is another error.

    The client may run a callback while its own error is pending, which then becomes the cause of a SystemError, or is lost. The
    fatal error of a `transactional` producer can still be read then, within a moment: a thread of the client sets it.
    """
    from confluent_kafka import KafkaException

    cause: BaseException | None = raised
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    if isinstance(cause, KafkaException):
        return cast("KafkaError", cause.args[0])
    if cause is None and transactional is not None:
        deadline = time.monotonic() + FATAL_PATIENCE
        while (fatal := _fatal(transactional)) is None and time.monotonic() < deadline:
            transactional.poll(FATAL_LOOK)
        if fatal is not None:
            return fatal
    raise raised


def _fatal(transactional: Producer) -> KafkaError | None:
    """Return the fatal error of the producer, if known: it then refuses to begin a transaction."""
    from confluent_kafka import KafkaException

    try:
        transactional.begin_transaction()
    except KafkaException as refused:
        error = cast("KafkaError", refused.args[0])
        return error if error.fatal() else None
    return None


class Sender:
    """A producer for one topic. `own` are further options of it. Used by one thread; `alive` is called while it waits."""

    def __init__(
        self, cluster: KafkaCluster, topic: str, partitioner: str, most_bytes: int, alive: Callable[[], None] = lambda: None, **own: Any
    ) -> None:
        self.problems = Problems()
        self._topic, self._alive = topic, alive
        self._failed: tuple[KafkaError, Message] | None = None
        if "message.timeout.ms" not in cluster.options:
            own["message_timeout_ms"] = DELIVERY_SECONDS * 1000
        self.producer = cluster.producer(
            partitioner=PARTITIONERS[partitioner],
            message_max_bytes=most_bytes,
            delivery_report_only_error=True,
            on_delivery=self._delivered,
            error_cb=self.problems,
            **own,
        )

    def send(self, messages: pa.RecordBatch) -> None:
        """Pass messages (`key`, `value`, headers) to the producer. Raises KafkaException once one of them can't be delivered."""
        produce, topic = self.producer.produce, self._topic
        keys, values = messages.column(0).to_pylist(), messages.column(1).to_pylist()
        headers = _headers(messages)
        for place, (value, key) in enumerate(zip(values, keys, strict=True)):
            while True:
                try:
                    if headers is None:
                        produce(topic, value, key)
                    else:
                        produce(topic, value, key, headers=headers[place])
                    break
                except BufferError:
                    self._wait(self.producer.poll, ROOM_SECONDS)
        self.producer.poll(0)
        self._check()

    def flush(self) -> None:
        """Wait until all are delivered. Raises KafkaException once one can't be, at the latest after `message.timeout.ms`."""
        while self._wait(self.producer.flush, TURN):
            pass

    def close(self) -> None:
        """Discard undelivered messages. The next producer with this id, or a time-out, ends an open transaction."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException, SystemError):
            self.producer.purge()
            self.producer.flush(0)

    def _wait(self, turn: Callable[[float], int], seconds: float) -> int:
        left = turn(seconds)
        self._alive()
        self._check()
        return left

    @property
    def failed_key(self) -> bytes | None:
        """The key of the first message that could not be delivered."""
        return self._failed[1].key() if self._failed is not None else None

    def _check(self) -> None:
        if self._failed is not None:
            from confluent_kafka import KafkaException

            error, worst = self._failed[0], self.problems.worst
            raise KafkaException(worst if error.name() == "_MSG_TIMED_OUT" and worst is not None else error)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        """Record a failed delivery. Like `Problems`, it must not call any function."""
        if error is not None and self._failed is None:
            self._failed = error, message


def _headers(messages: pa.RecordBatch) -> list[list[tuple[str, str | bytes | None]]] | None:
    """Return the headers of each message, without nulls."""
    names = messages.schema.names[2:]
    if not names:
        return None
    columns = [messages.column(place).to_pylist() for place in range(2, messages.num_columns)]
    return [
        [(name, value) for name, value in zip(names, values, strict=True) if value is not None] for values in zip(*columns, strict=True)
    ]
