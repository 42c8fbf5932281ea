"""The topics of a source: their partitions, numbered the same in every worker, and queries about offsets.

Partition `p` of topic `i` of `n` has the ordinal `p * n + i`, so a partition that is added later has one too, and belongs to a
known reader: ordinal `o` to reader `o % parallelism`. The end of a partition is that of its committed records: the last stable
offset, after which a transaction may be open.

>>> topics = Topics(("clicks", "views"))
>>> topics.ordinal("views", 3), topics.at(7)
(7, ('views', 3))
>>> topics.belongs_to(7, index=1, parallelism=2)
True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ....engine.errors import ConnectorError, FlowError
from ..cluster import REPLY_SECONDS, KafkaCluster, Problems

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id that a broker without topic ids returns: zeros."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a source. `names`: in the order in which the user gave them, each once."""

    names: tuple[str, ...]

    @classmethod
    def checked(cls, topics: str | Sequence[str], operator: str) -> Topics:
        """Create topics from a user's names. Raises FlowError for an invalid name, or none."""
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        if not names or not all(isinstance(name, str) and name for name in names):
            raise FlowError(f"operator `{operator}`: topics is {topics!r}; expected the name of a topic, or a list of names")
        if len(set(names)) < len(names):
            raise FlowError(f"operator `{operator}`: topics={topics!r} has a name twice")
        return cls(names)

    def ordinal(self, topic: str, partition: int) -> int:
        """Return the ordinal of a partition."""
        return partition * len(self.names) + self.names.index(topic)

    def at(self, ordinal: int) -> tuple[str, int]:
        """Return the topic and the partition with an ordinal."""
        partition, topic = divmod(ordinal, len(self.names))
        return self.names[topic], partition

    def shown(self, ordinal: int) -> str:
        """Return a description of the partition for messages."""
        topic, partition = self.at(ordinal)
        return f"partition {partition} of topic `{topic}`"

    @staticmethod
    def belongs_to(ordinal: int, index: int, parallelism: int) -> bool:
        """Return True if reader `index` of `parallelism` has the partition with this ordinal."""
        return ordinal % parallelism == index


class Offsets:
    """A client for these queries. Every method raises ConnectorError if a broker doesn't answer or a partition doesn't exist."""

    def __init__(self, cluster: KafkaCluster, topics: Topics, seconds: float | None = None) -> None:
        self._cluster, self._topics, self._seconds = cluster, topics, REPLY_SECONDS if seconds is None else seconds
        self._problems = Problems()
        self._admin = cluster.admin(error_cb=self._problems)

    def partitions(self) -> list[int]:
        """List the numbers of all existing partitions, ascending."""
        there = self._cluster.partitions_by(self._admin, self._problems, self._topics.names, self._seconds)
        return sorted(self._topics.ordinal(topic, number) for topic, numbers in there.items() for number in numbers)

    def firsts(self, ordinals: Iterable[int]) -> dict[int, int]:
        """Return the first available offset of each partition."""
        return self._listed(ordinals, _spec().earliest())

    def ends(self, ordinals: Iterable[int]) -> dict[int, int]:
        """Return the offset after the last committed record of each partition."""
        return self._listed(ordinals, _spec().latest())

    def since(self, ordinals: Iterable[int], milliseconds: int) -> dict[int, int | None]:
        """Return the first offset of each partition whose timestamp isn't earlier, None if there is none."""
        found = self._listed(ordinals, _spec().for_timestamp(milliseconds))
        return {ordinal: None if offset < 0 else offset for ordinal, offset in found.items()}

    def ids(self) -> tuple[str, ...]:
        """Return the id of each topic; empty if the broker has none, or hides it from this user."""
        from confluent_kafka import KafkaException, TopicCollection

        described = self._admin.describe_topics(TopicCollection(list(self._topics.names)), request_timeout=self._seconds)
        found = []
        for name in self._topics.names:
            try:
                topic_id = str(described[name].result(self._seconds).topic_id)
            except (KafkaException, TimeoutError):
                topic_id = NO_ID
            found.append("" if topic_id in {NO_ID, "None"} else topic_id)
        return tuple(found)

    def _listed(self, ordinals: Iterable[int], spec: Any) -> dict[int, int]:
        from confluent_kafka import IsolationLevel, KafkaException, TopicPartition

        partitions = {ordinal: TopicPartition(*self._topics.at(ordinal)) for ordinal in ordinals}
        if not partitions:
            return {}
        answers = self._admin.list_offsets(
            dict.fromkeys(partitions.values(), spec),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._seconds,
        )
        found = {}
        for ordinal, partition in partitions.items():
            try:
                found[ordinal] = answers[partition].result(2 * self._seconds).offset
            except KafkaException as error:
                self._admin.poll(0)  # calls `problems`
                raise self._cluster.error(error.args[0], self._topics.shown(ordinal)) from error
            except TimeoutError as error:
                raise ConnectorError(f"operator `{self._cluster.operator}`: no broker answers for {self._topics.shown(ordinal)}") from error
        return found


def _spec() -> Any:
    """Return the client's class of offset queries, for which it has no types."""
    from confluent_kafka import admin

    return admin.OffsetSpec  # type: ignore[attr-defined]  # it is documented, but not listed as exported
