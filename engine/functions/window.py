"""What a function of whole windows is told about its window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Window:
    """A window of event time: `start` belongs to it, `end` doesn't. A session's `end` is its gap after its last row. Both in UTC."""

    start: datetime
    end: datetime
