"""The story of a task: its last events, which are added to every protocol error.

Invariant: it holds no batch, only its number of rows, and never more than `LENGTH` events.

>>> from evenflow.engine.protocol.elements import Watermark
>>> story = Story()
>>> story.note(0.5, "receive", Watermark(7), channel=3)
>>> story.text()
'0.500000 receive on channel 3: Watermark(time=7)'
"""

from __future__ import annotations

from collections import deque

from ..batch import Batch
from ..errors import ProtocolError
from ..protocol.ids import ChannelId

LENGTH = 20
"""The number of events that are kept."""


class Story:
    """The last events of one task."""

    def __init__(self) -> None:
        self._events: deque[tuple[float, str, object, ChannelId | None]] = deque(maxlen=LENGTH)

    def note(self, now: float, event: str, what: object = None, channel: ChannelId | None = None) -> None:
        """Note an event at `now` (seconds), with its argument `what`."""
        self._events.append((now, event, what.num_rows if type(what) is Batch else what, channel))

    def text(self) -> str:
        """Return the events, one a line, the oldest first."""
        return "\n".join(_line(*event) for event in self._events)

    def tell(self, error: ProtocolError) -> None:
        """Append the story to the text of the error."""
        lines = self.text().replace("\n", "\n    ")
        error.args = (f"{error}\n  The last events of the task, with their times in seconds:\n    {lines}",)


def _line(now: float, event: str, what: object, channel: ChannelId | None) -> str:
    where = "" if channel is None else f" on channel {channel}"
    came = "" if what is None else f": {what} rows" if isinstance(what, int) else f": {what}"
    return f"{now:.6f} {event}{where}{came}"
