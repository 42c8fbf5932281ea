"""How a source follows its files: as the user says it, checked.

>>> follow_of(True, "2s", "1h", "read").poll_every
2.0
"""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.errors import FlowError
from ...engine.time.duration import Duration, microseconds, seconds


@dataclass(frozen=True, slots=True)
class Follow:
    """`poll_every`: seconds between two looks at the folder. `max_age`: nanoseconds for which a file that was read is remembered."""

    poll_every: float
    max_age: int


def follow_of(follow: bool, poll_every: Duration, max_age: Duration, operator: str) -> Follow | None:
    """The settings, or None if the source reads only the files that there are at the start. Raises FlowError for wrong ones."""
    settings = Follow(seconds(poll_every, "poll_every"), microseconds(max_age, "max_age") * 1_000)
    if not isinstance(follow, bool):
        raise FlowError(f"operator `{operator}`: follow is {follow!r}; it must be True or False")
    if not settings.poll_every or not settings.max_age:
        raise FlowError(f"operator `{operator}`: poll_every is {poll_every!r} and max_age {max_age!r}; both must be above 0")
    return settings if follow else None
