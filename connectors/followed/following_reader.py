"""The base of readers that follow a folder or a table: they check for new files regularly and never finish.

Invariant: the watermark never falls, even when a reassignment hands over files, because `shared` gives all new readers the
smallest one.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ...engine.protocol.elements import MAX_TIME, MIN_TIME
from ...engine.source import SourceReader
from ...engine.time.event_time import EventTime
from ..quiet import CLOCKS, Clocks, Quiet


class FollowingReader(SourceReader):
    """One of `parallelism` readers. A subclass sets `_next_look` after each look, and `_newest`, the newest known event time."""

    def __init__(self, index: int, parallelism: int, event_time: EventTime | None, clocks: Clocks = CLOCKS) -> None:
        self._index, self._parallelism, self._event_time, self._clock = index, parallelism, event_time, clocks.now
        self._newest = self._watermark = MIN_TIME
        self._next_look = -1.0
        self._quiet = Quiet(event_time, clocks)

    @property
    def finished(self) -> bool:
        return False

    def watermark(self) -> int:
        if self._event_time is None:
            return MAX_TIME
        self._watermark = max(self._watermark, self._bound(self._event_time), self._quiet.bound)
        return self._watermark

    def position(self) -> dict[str, Any]:
        self.watermark()
        return {
            "reader": [self._index, self._parallelism],
            **self._position_of_files(),
            "newest": self._newest,
            "watermark": self._watermark,
        }

    def seek(self, position: Any) -> None:
        self._newest, self._watermark = position["newest"], position["watermark"]

    def ready_in(self) -> float:
        return max(0.0, self._next_look - self._clock())

    @abstractmethod
    def _bound(self, event_time: EventTime) -> int:
        """Return a lower bound (microseconds) of the event times of all later rows."""

    @abstractmethod
    def _position_of_files(self) -> dict[str, Any]:
        """Return the files that were read, and how far, as a msgpack-able value."""
