"""What a broker says of its partitions: where their logs begin and end, which offset a time has, and the ids of topics.

An end is that of the committed records: the last stable offset, behind which a transaction may be open.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.errors import ConnectorError
from .cluster import REPLY_SECONDS, KafkaCluster, Problems
from .topics import Topics

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What a broker without ids of topics says: zeros."""


class Offsets:
    """Asks with a client of its own. Every method raises ConnectorError if a broker gives no answer, or a partition isn't there."""

    def __init__(self, cluster: KafkaCluster, topics: Topics, seconds: float | None = None) -> None:
        self._cluster, self._topics, self._seconds = cluster, topics, REPLY_SECONDS if seconds is None else seconds
        self._problems = Problems()
        self._admin = cluster.admin(error_cb=self._problems)

    def partitions(self) -> list[int]:
        """The numbers of all partitions that are there, ascending."""
        there = self._cluster.partitions_by(self._admin, self._problems, self._topics.names, self._seconds)
        return sorted(self._topics.ordinal(topic, number) for topic, numbers in there.items() for number in numbers)

    def firsts(self, ordinals: Iterable[int]) -> dict[int, int]:
        """The first offset of each partition that is still there."""
        return self._listed(ordinals, _spec().earliest())

    def ends(self, ordinals: Iterable[int]) -> dict[int, int]:
        """The offset behind the last committed record of each."""
        return self._listed(ordinals, _spec().latest())

    def since(self, ordinals: Iterable[int], milliseconds: int) -> dict[int, int | None]:
        """The first offset of each whose timestamp isn't earlier, None if there is none."""
        found = self._listed(ordinals, _spec().for_timestamp(milliseconds))
        return {ordinal: None if offset < 0 else offset for ordinal, offset in found.items()}

    def ids(self) -> tuple[str, ...]:
        """The id of each topic; empty where the broker gives none, or doesn't let this user see it."""
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

        asked = {ordinal: TopicPartition(*self._topics.at(ordinal)) for ordinal in ordinals}
        if not asked:
            return {}
        answers = self._admin.list_offsets(
            dict.fromkeys(asked.values(), spec),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._seconds,
        )
        found = {}
        for ordinal, partition in asked.items():
            try:
                found[ordinal] = answers[partition].result(2 * self._seconds).offset
            except KafkaException as error:
                self._admin.poll(0)  # calls `problems`
                raise self._cluster.error(error.args[0], self._topics.shown(ordinal)) from error
            except TimeoutError as error:
                raise ConnectorError(f"operator `{self._cluster.operator}`: no broker answers for {self._topics.shown(ordinal)}") from error
        return found


def _spec() -> Any:
    """What makes the client's words for offsets; it has no types."""
    from confluent_kafka import admin

    return admin.OffsetSpec  # type: ignore[attr-defined]  # it is documented, but not listed as exported
