"""The checked settings of a source that follows its files.

>>> follow_of("lines", "2s", "1h", "read").lines
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...engine.errors import FlowError
from ...engine.time.duration import Duration, microseconds, seconds
from ..positions import check_all_readers

LOOKING = 0.1
"""The largest fraction of its time that an idle reader spends on listing the folder."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Settings of following. `lines`: files grow. `poll_every`: seconds between looks. `max_age`: nanoseconds to remember a read
    file.
    """

    lines: bool
    poll_every: float
    max_age: int

    def next_look(self, began: float, ended: float) -> float:
        """Return when to look again after a look from `began` to `ended`, in seconds of one clock."""
        return ended + max(self.poll_every, (ended - began) * (1 / LOOKING - 1))


def follow_of(
    follow: bool | Literal["lines"], poll_every: Duration, max_age: Duration, operator: str, *, may_grow: bool = True
) -> Follow | None:
    """Return the settings, or None if the source reads only the files present at the start. Raises FlowError for wrong ones.

    `may_grow`: True if files of this kind can be read as they grow.
    """
    if not may_grow and follow not in (True, False):
        raise FlowError(f"operator `{operator}`: follow is {follow!r}; it must be True or False")
    if follow not in (True, False, "lines"):
        raise FlowError(f'operator `{operator}`: follow is {follow!r}; it must be True, False or, for files that grow, "lines"')
    settings = Follow(follow == "lines", seconds(poll_every, "poll_every"), microseconds(max_age, "max_age") * 1_000)
    if not settings.poll_every or not settings.max_age:
        raise FlowError(f"operator `{operator}`: poll_every is {poll_every!r} and max_age {max_age!r}; both must be above 0")
    return settings if follow else None


def shared(positions: Sequence[Any], parallelism: int, operator: str) -> list[dict[str, Any]]:
    """Return the parts other than files of the positions of `parallelism` readers: the event time that all had reached."""
    check_all_readers((tuple(position["reader"]) for position in positions), operator)
    newest, watermark = min(position["newest"] for position in positions), min(position["watermark"] for position in positions)
    return [{"reader": [index, parallelism], "newest": newest, "watermark": watermark} for index in range(parallelism)]
