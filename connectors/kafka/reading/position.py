"""The position of a Kafka reader: the next offset of each of its partitions, and its event time.

It contains names and ids of the topics, so that another list of topics, or a recreated topic, is noticed. Every partition that a
reader has begun is in one position; a partition in none of them is new and is read from its beginning.

>>> one = KafkaPosition(("clicks",), ("",), 0, 1, (At(0, 10, 7), At(1, 20, None)), watermark=5, finished=False)
>>> [position.offsets for position in share_out_partitions([one], 2, "read_kafka")]
[(At(ordinal=0, offset=10, newest=7),), (At(ordinal=1, offset=20, newest=None),)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...positions import TimedPosition, check_all_readers, time_of
from .topics import Topics


@dataclass(frozen=True, slots=True)
class At:
    """The next `offset` of a partition, and the newest event time emitted from it, None before the first."""

    ordinal: int
    offset: int
    newest: int | None


@dataclass(frozen=True, slots=True)
class KafkaPosition(TimedPosition):
    """The position of reader `index` of `parallelism`. `ids`: of the topics, empty if unknown."""

    topics: tuple[str, ...]
    ids: tuple[str, ...]
    index: int
    parallelism: int
    offsets: tuple[At, ...]

    def encode(self) -> dict[str, Any]:
        """Return the position as a msgpack-able map."""
        return {
            "topics": list(self.topics),
            "ids": list(self.ids),
            "reader": [self.index, self.parallelism],
            "offsets": [[at.ordinal, at.offset, at.newest] for at in self.offsets],
            "watermark": self.watermark,
            "finished": self.finished,
        }

    @classmethod
    def decode(cls, encoded: Mapping[str, Any]) -> KafkaPosition:
        index, parallelism = encoded["reader"]
        return cls(
            tuple(encoded["topics"]),
            tuple(encoded["ids"]),
            index,
            parallelism,
            tuple(At(*at) for at in encoded["offsets"]),
            watermark=encoded["watermark"],
            finished=encoded["finished"],
        )


def share_out_partitions(positions: Sequence[KafkaPosition], parallelism: int, operator: str) -> list[KafkaPosition]:
    """Return positions of `parallelism` readers that together continue where the readers at `positions` were.

    Raises FlowError if `positions` are not those of all readers.
    """
    check_all_readers(((position.index, position.parallelism) for position in positions), operator)
    offsets = sorted((at for position in positions for at in position.offsets), key=lambda at: at.ordinal)
    time = time_of(positions)
    return [
        KafkaPosition(
            positions[0].topics,
            positions[0].ids,
            index,
            parallelism,
            tuple(at for at in offsets if Topics.belongs_to(at.ordinal, index, parallelism)),
            **time,
        )
        for index in range(parallelism)
    ]
