"""The network of simulated workers: channels that keep the order, and mailboxes in which messages overtake each other.

Invariant of a channel, checked as elements are sent: watermarks and barriers only rise, and no element follows the end or the last
barrier.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.joins.sides import is_side
from ...engine.plan.channel_spec import ChannelSpec
from ...engine.protocol.elements import MIN_TIME, Barrier, Element, End, Rewind, Watermark
from ...engine.protocol.state_channels import is_state_channel
from ...scheduler.protocol.messages import InOrder

T = TypeVar("T")


class SimulationError(AssertionError):
    """A run broke an invariant, got stuck, or gave other rows than the oracle; the message has the seed that reproduces it."""


class Channel:
    """A first-in, first-out channel from one worker to another; `batches` counts those that were sent and not yet consumed.

    A change adds the affected workers to `touched`.
    """

    def __init__(self, spec: ChannelSpec, touched: set[str]) -> None:
        self.spec = spec
        self._touched = touched
        self.elements: deque[Element] = deque()
        self.batches = 0
        self.ended = False
        self._watermark = MIN_TIME
        self._barrier = 0
        self._columns = pa.schema([])

    def send(self, element: Element) -> None:
        """Send an element. Raises SimulationError if it breaks the channel's invariant."""
        self._check(element)
        self.batches += isinstance(element, Batch)
        self.elements.append(element)
        self._touched.add(self.spec.receiver)

    def take(self) -> Element:
        """Take the oldest element."""
        return self.elements.popleft()

    def consumed(self) -> None:
        """Note that the receiver has processed a batch."""
        self.batches -= 1
        self._touched.add(self.spec.sender)

    def _check(self, element: Element) -> None:
        if self.ended:
            self._refuse(element, "behind the end")
        if isinstance(element, Batch):
            if not element.num_rows and not is_state_channel(self.spec.id):
                self._check_columns(element)
        elif isinstance(element, Watermark):
            if element.time <= self._watermark:
                self._refuse(element, f"behind watermark {self._watermark}")
            self._watermark = element.time
        elif isinstance(element, Rewind):
            self._watermark = element.time
        elif isinstance(element, Barrier):
            if element.checkpoint <= self._barrier:
                self._refuse(element, f"behind barrier {self._barrier}")
            self._barrier = element.checkpoint
        self.ended = isinstance(element, End) or (isinstance(element, Barrier) and element.last)

    def _check_columns(self, batch: Batch) -> None:
        """Raise SimulationError for a batch without rows, unless it announces new columns to a join."""
        schema = batch.rows.schema
        if not is_side(schema) or schema.equals(self._columns):
            self._refuse(batch, "without rows")
        self._columns = schema

    def _refuse(self, element: Element, where: str) -> None:
        what = "a batch" if isinstance(element, Batch) else repr(element)
        raise SimulationError(f"{self.spec.sender} sent {self.spec.receiver} {what} {where} (channel {self.spec.id})")


class Mailbox(Generic[T]):
    """Numbered messages from one sender to one receiver. They may overtake each other and be repeated, as actor calls may."""

    def __init__(self) -> None:
        self.under_way: list[tuple[int, T]] = []
        self._posted = 0
        self._inbox: InOrder[T] = InOrder()

    def post(self, message: T) -> None:
        """Send a message."""
        self.under_way.append((self._posted, message))
        self._posted += 1

    def repeat(self, index: int) -> None:
        """Send the message at `index` once more."""
        self.under_way.append(self.under_way[index])

    def arrive(self, index: int) -> list[T]:
        """Deliver the message at `index`; return the messages that the receiver may now read."""
        return self._inbox.put(*self.under_way.pop(index))
