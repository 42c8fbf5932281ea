"""The layout of a file sink's parts: the folders that they are in, and when a part is closed and the next one begun.

>>> layout_of("day", None, "5m", "write_csv")
Layout(partition_by=('day',), roll_bytes=None, roll_after=300.0)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...engine.errors import FlowError
from ...engine.time.duration import Duration, seconds
from .partitions import partition_columns

MOST_OPEN = 64
"""The open parts of one writer; beyond it, the part that has waited longest for a row is closed."""

MOST_PARTS = 10_000
"""The parts of one writer between two checkpoints."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The options of a sink: partition columns, and the bytes and the seconds after which a part is closed (None: at checkpoints only)."""

    partition_by: tuple[str, ...] = ()
    roll_bytes: int | None = None
    roll_after: float | None = None


def layout_of(partition_by: str | Iterable[str], roll_bytes: int | None, roll_after: Duration | None, operator: str) -> Layout:
    """Return the layout that a user's options describe. Raises FlowError naming a wrong option."""
    if roll_bytes is not None and (not isinstance(roll_bytes, int) or isinstance(roll_bytes, bool) or roll_bytes < 1):
        raise FlowError(f"operator `{operator}`: roll_bytes={roll_bytes!r}: expected a number of bytes, for example 128 << 20")
    after = None if roll_after is None else seconds(roll_after, f"operator `{operator}`: roll_after")
    if after == 0:
        raise FlowError(f'operator `{operator}`: roll_after={roll_after!r}: expected more than no time, for example "5m"')
    return Layout(partition_columns(partition_by, operator), roll_bytes, after)
