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

from ....engine.errors import FlowError
from ....engine.protocol.elements import MAX_TIME
from .topics import Topics


@dataclass(frozen=True, slots=True)
class At:
    """The next `offset` of a partition, and the newest event time emitted from it, None before the first."""

    ordinal: int
    offset: int
    newest: int | None


@dataclass(frozen=True, slots=True)
class KafkaPosition:
    """The position of reader `index` of `parallelism`. `ids`: of the topics, empty if unknown. `watermark`: the reader's last
    one.
    """

    topics: tuple[str, ...]
    ids: tuple[str, ...]
    index: int
    parallelism: int
    offsets: tuple[At, ...]
    watermark: int
    finished: bool

    @property
    def earliest(self) -> int:
        """A lower bound of the event times of all later records, in microseconds."""
        return MAX_TIME if self.finished else self.watermark

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
            encoded["watermark"],
            encoded["finished"],
        )


def share_out_partitions(positions: Sequence[KafkaPosition], parallelism: int, operator: str) -> list[KafkaPosition]:
    """Return positions of `parallelism` readers that together continue where the readers at `positions` were.

    Raises FlowError if `positions` are not those of all readers.
    """
    readers = sorted((position.index, position.parallelism) for position in positions)
    if not readers or readers != [(index, len(positions)) for index in range(len(positions))]:
        raise FlowError(
            f"operator `{operator}`: these {len(positions)} positions are not those of all its {len(positions)} readers at one time; "
            "use all positions of one checkpoint"
        )
    offsets = sorted((at for position in positions for at in position.offsets), key=lambda at: at.ordinal)
    # A reader that has finished doesn't hold event time back.
    unfinished = [position for position in positions if not position.finished]
    return [
        KafkaPosition(
            positions[0].topics,
            positions[0].ids,
            index,
            parallelism,
            tuple(at for at in offsets if Topics.belongs_to(at.ordinal, index, parallelism)),
            min(position.watermark for position in unfinished or positions),
            not unfinished,
        )
        for index in range(parallelism)
    ]
