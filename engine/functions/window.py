"""The window that is passed to a function of whole windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Window:
    """A window of event time, from `start` up to but without `end`, both in UTC.

    A session's `end` is its gap after its last row.
    """

    start: datetime
    end: datetime
