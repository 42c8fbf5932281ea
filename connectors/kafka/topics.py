"""The partitions of the topics that a source reads, numbered the same in every worker.

Partition `p` of topic `i` of `n` has the ordinal `p * n + i`, so a partition that is added later has one too, and belongs to a known
reader: ordinal `o` to reader `o % parallelism`.

>>> topics = Topics(("clicks", "views"))
>>> topics.ordinal("views", 3), topics.at(7)
(7, ('views', 3))
>>> topics.are_of(7, index=1, parallelism=2)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...engine.errors import FlowError


@dataclass(frozen=True, slots=True)
class Topics:
    """`names`: in the order in which the user gave them, each once."""

    names: tuple[str, ...]

    @classmethod
    def checked(cls, topics: str | Sequence[str], operator: str) -> Topics:
        """Raises FlowError for what is no name of a topic, or no name at all."""
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        if not names or not all(isinstance(name, str) and name for name in names):
            raise FlowError(f"operator `{operator}`: topics is {topics!r}; expected the name of a topic, or a list of names")
        if len(set(names)) < len(names):
            raise FlowError(f"operator `{operator}`: topics={topics!r} has a name twice")
        return cls(names)

    def ordinal(self, topic: str, partition: int) -> int:
        """The number of a partition."""
        return partition * len(self.names) + self.names.index(topic)

    def at(self, ordinal: int) -> tuple[str, int]:
        """The topic and the partition of a number."""
        partition, topic = divmod(ordinal, len(self.names))
        return self.names[topic], partition

    def shown(self, ordinal: int) -> str:
        """The partition in messages."""
        topic, partition = self.at(ordinal)
        return f"partition {partition} of topic `{topic}`"

    @staticmethod
    def are_of(ordinal: int, index: int, parallelism: int) -> bool:
        """Whether reader `index` of `parallelism` has the partition of this number."""
        return ordinal % parallelism == index
