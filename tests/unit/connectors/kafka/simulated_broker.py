"""A Kafka cluster in this process whose clients fail by a seed: a request is executed, dropped or delayed, and errors don't tell
which.

It keeps the rules that a committer relies on: one epoch per transactional id, so that only the newest producer can change
anything; `init_transactions` aborts an open transaction; messages and offsets of a transaction appear together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from evenflow.connectors.kafka.cluster import KafkaCluster

LOST = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.CONCURRENT_TRANSACTIONS)
"""Errors after which the outcome of a request is unknown."""


class Crash(BaseException):
    """The process that commits is lost."""


@dataclass
class Transaction:
    """The messages and offsets of a producer's open transaction."""

    messages: list[tuple[bytes | None, bytes | None]] = field(default_factory=list)
    offsets: dict[str, tuple[int, str]] = field(default_factory=dict)


class Broker:
    """A simulated broker. `faults`: the most faults in all. `elsewhere`: called at any moment, for others to act meanwhile."""

    def __init__(self, random: Random, faults: int) -> None:
        self.random, self.faults = random, faults
        self.elsewhere: Callable[[], None] = lambda: None
        self.topic: list[bytes | None] = []
        self.offsets: dict[str, tuple[int, str]] = {}
        self.met: set[str] = set()
        """The kinds of faults that there were."""
        self._newest: dict[str, Producer] = {}
        self._late: list[Callable[[], None]] = []

    def step(self) -> None:
        """Receive a request: others may act before it, late requests may arrive, the process may crash."""
        if self._late and self.random.random() < 0.3:
            self.arrive()
        self.elsewhere()
        if self.chance(0.03, "crash"):
            raise Crash

    def chance(self, share: float, kind: str) -> bool:
        """Return True if a fault happens now."""
        if self.faults and self.random.random() < share:
            self.faults -= 1
            self.met.add(kind)
            return True
        return False

    def ask(self, kind: str, request: Callable[[], Any]) -> Any:
        """Execute a request now, later or never, perhaps with an error that doesn't tell which."""
        self.step()
        if self.chance(0.05, f"{kind} is lost"):
            self._raise()
        if self.chance(0.05, f"{kind} is late"):
            self._late.append(request)
            self._raise()
        done = request()
        if self.chance(0.05, f"the answer to {kind} is lost"):
            self._raise()
        return done

    def arrive(self) -> None:
        """Execute the delayed requests, without a response."""
        late, self._late = self._late, []
        for request in late:
            with suppress(KafkaException):
                request()

    def begin_epoch(self, producer: Producer) -> None:
        """Fence the previous producer, and end its transaction."""
        older = self._newest.get(producer.id)
        if older is not producer:
            if older is not None:
                older.sent = Transaction()
            self._newest[producer.id] = producer

    def check_epoch(self, producer: Producer) -> None:
        """Raise KafkaException if the producer is fenced."""
        if self._newest.get(producer.id) is not producer:
            self.met.add("fenced")
            raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))

    @property
    def open(self) -> bool:
        """True if a transaction of a newest producer is open."""
        return any(producer.sent.messages or producer.sent.offsets for producer in self._newest.values())

    def _raise(self) -> None:
        raise KafkaException(KafkaError(self.random.choice(LOST), "lost", retriable=True))


class Producer:
    """The part of confluent_kafka's producer that a sender needs. `sent` is the content of its open transaction."""

    def __init__(self, broker: Broker, config: dict[str, Any]) -> None:
        self._broker, self._delivered = broker, config["on_delivery"]
        self.id = config.get("transactional_id", "")
        self.sent = Transaction()
        self._queue: list[tuple[bytes | None, bytes | None]] = []
        self._broken = False

    def init_transactions(self, timeout: float) -> None:
        self._broker.ask("init_transactions", lambda: self._broker.begin_epoch(self))

    def begin_transaction(self) -> None:
        self._broker.step()
        self._broker.check_epoch(self)

    def produce(self, topic: str, value: bytes | None, key: bytes | None, headers: Any = None) -> None:
        if len(self._queue) >= 3:
            raise BufferError
        self._queue.append((key, value))

    def poll(self, timeout: float) -> int:
        return self.flush(timeout)

    def flush(self, timeout: float) -> int:
        """Deliver some messages: reported failures may have been written, and acknowledgements arrive in any order."""
        self._broker.step()
        random, broker = self._broker.random, self._broker
        some = random.randint(0, len(self._queue)) if broker.faults else len(self._queue)
        now, self._queue = self._queue[:some], self._queue[some:]
        outcomes = []
        for message in now:
            failed = KafkaError(KafkaError._MSG_TIMED_OUT, "late") if broker.chance(0.02, "a message fails") else None
            if failed is None or random.random() < 0.5:
                try:
                    self._append(message)
                except KafkaException as error:
                    failed = error.args[0]
            outcomes.append((failed, message))
        random.shuffle(outcomes)
        for failed, (key, _) in outcomes:
            if failed is not None:
                self._broken = True
                self._delivered(failed, Message(key))
        return len(self._queue)

    def purge(self) -> None:
        self._queue = []

    def send_offsets_to_transaction(self, positions: list[TopicPartition], group: Any, timeout: float) -> None:
        def request() -> None:
            self._broker.check_epoch(self)
            self.sent.offsets[group] = (positions[0].offset, positions[0].metadata)

        self._broker.ask("send_offsets", request)

    def commit_transaction(self, timeout: float) -> None:
        if self._broken:
            raise KafkaException(KafkaError(KafkaError._PURGE_QUEUE, "failed", txn_requires_abort=True))
        assert not self._queue

        def request() -> None:
            self._broker.check_epoch(self)
            sent, self.sent = self.sent, Transaction()
            self._broker.topic += [value for _, value in sent.messages]
            self._broker.offsets |= sent.offsets

        if self._broker.chance(0.03, "the transaction is aborted"):
            self.sent = Transaction()
            raise KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE, "timed out", txn_requires_abort=True))
        self._broker.ask("commit_transaction", request)

    def _append(self, message: tuple[bytes | None, bytes | None]) -> None:
        if not self.id:
            self._broker.topic.append(message[1])
            return
        self._broker.check_epoch(self)
        self.sent.messages.append(message)


@dataclass(frozen=True)
class Message:
    """The message in a delivery report."""

    _key: bytes | None

    def key(self) -> bytes | None:
        return self._key


class Consumer:
    """The part of confluent_kafka's consumer that the marker needs."""

    def __init__(self, broker: Broker, config: dict[str, Any]) -> None:
        self._broker, self._group = broker, config["group_id"]

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        offset, metadata = self._broker.ask("committed", lambda: self._broker.offsets.get(self._group, (-1001, "")))
        return [TopicPartition(partitions[0].topic, partitions[0].partition, offset, metadata=metadata)]

    def consumer_group_metadata(self) -> str:
        return str(self._group)

    def close(self) -> None:
        pass


class SimulatedCluster(KafkaCluster):
    """A cluster whose clients send their requests to a simulated broker."""

    def __init__(self, broker: Broker) -> None:
        super().__init__("simulated:9092", operator="write_kafka")
        object.__setattr__(self, "broker", broker)

    def producer(self, **own: Any) -> Any:
        return Producer(self.broker, own)

    def consumer(self, **own: Any) -> Any:
        return Consumer(self.broker, own)
