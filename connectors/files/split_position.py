"""The position of a reader of splits: its unread splits, its partly read ones, and its event time.

It names splits by their ordinals, and partly read ones also by their paths, so that another list of files is noticed. This is all
that is needed to reassign the splits to any number of readers.

>>> partly = PartlyRead(ordinal=0, path="a", rows=10, newest=7, bound=5)
>>> one = SplitPosition(Share.of(0, 1).since(1), (partly,), newest_listed=20, watermark=5, finished=False)
>>> two = share_out_splits([one], 2, "read")
>>> [position.share.below(5).tolist() for position in two], [position.partly == (partly,) for position in two]
([[2, 4], [1, 3]], [True, False])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..positions import TimedPosition, time_of
from ..share import Share, share_out


@dataclass(frozen=True, slots=True)
class PartlyRead:
    """A partly read split: its first `rows` rows were emitted, with the `newest` event time; later rows are at least `bound`
    (microseconds).
    """

    ordinal: int
    path: str
    rows: int
    newest: int | None
    bound: int


@dataclass(frozen=True, slots=True)
class SplitPosition(TimedPosition):
    """The position of one reader. `share`: the ordinals of unread splits. `partly`: the partly read ones, which are not in `share`.

    `newest_listed`: the newest known event time of the splits listed so far.
    """

    share: Share
    partly: tuple[PartlyRead, ...]
    newest_listed: int

    def encode(self) -> dict[str, Any]:
        """Return the position as a msgpack-able map."""
        return {
            "share": self.share.encode(),
            "partly": [[split.ordinal, split.path, split.rows, split.newest, split.bound] for split in self.partly],
            "newest_listed": self.newest_listed,
            "watermark": self.watermark,
            "finished": self.finished,
        }

    @classmethod
    def decode(cls, encoded: Mapping[str, Any]) -> SplitPosition:
        return cls(
            Share.decode(encoded["share"]),
            tuple(PartlyRead(*split) for split in encoded["partly"]),
            encoded["newest_listed"],
            watermark=encoded["watermark"],
            finished=encoded["finished"],
        )


def share_out_splits(positions: Sequence[SplitPosition], parallelism: int, operator: str) -> list[SplitPosition]:
    """Return positions of `parallelism` readers for the remaining splits of the readers at `positions`.

    One reader continues each partly read split. Raises FlowError if `positions` are not those of all readers.
    """
    shares = share_out([position.share for position in positions], parallelism, operator)
    partly = [split for position in positions for split in position.partly]
    newest_listed, time = min(position.newest_listed for position in positions), time_of(positions)
    return [SplitPosition(share, tuple(partly[index::parallelism]), newest_listed, **time) for index, share in enumerate(shares)]
