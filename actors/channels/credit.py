"""Credit: the batches and bytes that a sender may have in flight on a channel.

Both ends of a channel have the same `ChannelLimits`, so a sender starts with full credit and without a handshake. The receiver
reports the processed batches and bytes as totals since the start of the channel; both ends count the bytes of whole messages. At
no time are more batches or bytes in flight than the limits allow, except that a batch larger than all the credit travels alone.

>>> sender, receiver = SenderCredit(ChannelLimits(credit_batches=2)), ReceiverCredit(ChannelLimits(credit_batches=2))
>>> for size in (100, 100):
...     sender.spend(size)
...     receiver.arrived(size)
>>> sender.admits(100), receiver.processed()
(False, True)
>>> sender.restore(*receiver.grant())
>>> sender.admits(100)
True
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ...engine.errors import FlowError, ProtocolError


@dataclass(frozen=True, slots=True)
class ChannelLimits:
    """The limits of one channel: batches and bytes of messages in flight. The same for all workers of a job."""

    credit_batches: int = 32
    credit_bytes: int = 8 << 20

    def __post_init__(self) -> None:
        if self.credit_batches < 1 or self.credit_bytes < 1:
            raise FlowError(
                f"a channel needs credit for at least 1 batch and 1 byte, got {self.credit_batches} batches and {self.credit_bytes} bytes"
            )


class SenderCredit:
    """The sender's account of a channel's messages in flight."""

    def __init__(self, limits: ChannelLimits) -> None:
        self._limits = limits
        self._sent_batches = self._sent_bytes = 0
        self._done_batches = self._done_bytes = 0

    def admits(self, size: int) -> bool:
        """Return True if a batch of `size` bytes may be sent now."""
        batches = self._sent_batches - self._done_batches
        return batches == 0 or (
            batches < self._limits.credit_batches and self._sent_bytes - self._done_bytes + size <= self._limits.credit_bytes
        )

    def spend(self, size: int) -> None:
        """Record that a batch of `size` bytes was sent."""
        self._sent_batches += 1
        self._sent_bytes += size

    def restore(self, batches: int, size: int) -> None:
        """Restore credit up to the totals that the receiver has processed.

        Raises ProtocolError for batches or bytes that were never sent or were already restored.
        """
        if not (self._done_batches <= batches <= self._sent_batches and self._done_bytes <= size <= self._sent_bytes):
            raise ProtocolError(
                f"credit for {batches} batches, {size} bytes was returned in total; before it {self._done_batches}, {self._done_bytes} "
                f"had been returned, and {self._sent_batches}, {self._sent_bytes} were sent"
            )
        self._done_batches, self._done_bytes = batches, size


class ReceiverCredit:
    """The receiver's account of a channel: messages not yet processed, and processed ones whose credit was not yet returned."""

    def __init__(self, limits: ChannelLimits) -> None:
        self._limits = limits
        self._waiting: deque[int] = deque()
        self._under_way_batches = self._under_way_bytes = 0
        self._done_batches = self._done_bytes = 0
        self._granted_batches = self._granted_bytes = 0

    def arrived(self, size: int) -> None:
        """Record the arrival of a batch of `size` bytes. Raises ProtocolError if the sender had no credit for it."""
        batches, total = self._under_way_batches + 1, self._under_way_bytes + size
        if batches > 1 and (batches > self._limits.credit_batches or total > self._limits.credit_bytes):
            raise ProtocolError(f"a batch of {size} bytes came in without credit: {batches} batches, {total} bytes would be in flight")
        self._under_way_batches, self._under_way_bytes = batches, total
        self._waiting.append(size)

    def processed(self) -> bool:
        """Record that the oldest waiting batch was processed; return True if a grant must not wait any longer.

        Raises ValueError if no batch waits.
        """
        if not self._waiting:
            raise ValueError("more batches were processed than came in")
        self._done_batches += 1
        self._done_bytes += self._waiting.popleft()
        return (
            2 * (self._done_batches - self._granted_batches) >= self._limits.credit_batches
            or 2 * (self._done_bytes - self._granted_bytes) >= self._limits.credit_bytes
        )

    def grant(self) -> tuple[int, int]:
        """Return batches and bytes processed in total, to be sent to the sender now."""
        self._under_way_batches -= self._done_batches - self._granted_batches
        self._under_way_bytes -= self._done_bytes - self._granted_bytes
        self._granted_batches, self._granted_bytes = self._done_batches, self._done_bytes
        return self._done_batches, self._done_bytes
