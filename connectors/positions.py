"""Positions of a source's readers: the check that they are those of all readers, and their event time.

>>> behind, ended = TimedPosition(watermark=5, finished=False), TimedPosition(watermark=3, finished=True)
>>> time_of([behind, ended]), time_of([ended])
({'watermark': 5, 'finished': False}, {'watermark': 3, 'finished': True})
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.errors import FlowError
from ..engine.protocol.elements import MAX_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedPosition:
    """The position of a reader in event time. `watermark`: the reader's last one."""

    watermark: int
    finished: bool

    @property
    def earliest(self) -> int:
        """A lower bound of the event times of all later records, in microseconds."""
        return MAX_TIME if self.finished else self.watermark


def time_of(positions: Sequence[TimedPosition]) -> dict[str, Any]:
    """Return the fields of a `TimedPosition` that all these readers have reached together."""
    # A reader that has finished doesn't hold event time back.
    unfinished = [position for position in positions if not position.finished]
    return {"watermark": min(position.watermark for position in unfinished or positions), "finished": not unfinished}


def check_all_readers(readers: Iterable[tuple[int, int]], operator: str) -> None:
    """Raise FlowError unless these pairs of a reader's index and the number of readers are those of all readers."""
    found = sorted(readers)
    if not found or found != [(index, len(found)) for index in range(len(found))]:
        raise FlowError(
            f"operator `{operator}`: these {len(found)} positions are not those of all its readers at one time; "
            "use all positions of one checkpoint"
        )
