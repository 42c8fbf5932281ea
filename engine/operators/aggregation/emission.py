"""The policy when the results of windows are emitted: once at the end, or early and again when they have changed.

Event time alone decides. A window's changed keys are emitted when the watermark passes the window's end; with `updates`, also
when it passes a multiple of `every` (at every advance without one); and with `lateness`, for late records, until the watermark
has passed the end and the lateness. So the last row of a key and window is its result of all records that were not too late.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...protocol.elements import MAX_TIME


@dataclass(frozen=True, slots=True)
class Emission:
    """The policy, with `every` and `lateness` in microseconds; `every` None for every advance of the watermark."""

    updates: bool = False
    every: int | None = None
    lateness: int = 0

    @property
    def once(self) -> bool:
        """True if a key and window has one row."""
        return not self.updates and not self.lateness

    def due(self, before: int, watermark: int) -> bool:
        """Return True if changed windows are emitted when the watermark rises from `before`, in addition to those that end or
        close.
        """
        return self.every is None or watermark == MAX_TIME or watermark // self.every > before // self.every

    def describe(self) -> str:
        """Return a few words for `explain()`; none for windows that are emitted once."""
        words = []
        if self.updates:
            words.append("updates" if self.every is None else f"updates every {self.every / 1e6:g} s")
        if self.lateness:
            words.append(f"late records for {self.lateness / 1e6:g} s")
        return ", ".join(words)


ONCE = Emission()
"""The policy of a row per key and window, when the watermark passes the window's end."""
