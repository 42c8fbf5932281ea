"""Credit: how much a sender may have under way on a channel before the receiver has processed it.

Both ends of a channel have the same `ChannelLimits`, so a sender starts with full credit and without a handshake. The receiver
reports what it has processed as totals since the start of the channel; both ends count the bytes of whole messages. At no time
are more batches or bytes under way than the limits allow, except that a batch larger than all the credit travels alone.

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
    """What may be under way on one channel: batches, and bytes of their messages. The same for all workers of a job."""

    credit_batches: int = 32
    credit_bytes: int = 8 << 20

    def __post_init__(self) -> None:
        if self.credit_batches < 1 or self.credit_bytes < 1:
            raise FlowError(
                f"a channel needs credit for at least 1 batch and 1 byte, got {self.credit_batches} batches and {self.credit_bytes} bytes"
            )


class SenderCredit:
    """What the sender of a channel has under way."""

    def __init__(self, limits: ChannelLimits) -> None:
        self._limits = limits
        self._sent_batches = self._sent_bytes = 0
        self._done_batches = self._done_bytes = 0

    def admits(self, size: int) -> bool:
        """Whether a batch of `size` bytes may leave now."""
        batches = self._sent_batches - self._done_batches
        return batches == 0 or (
            batches < self._limits.credit_batches and self._sent_bytes - self._done_bytes + size <= self._limits.credit_bytes
        )

    def spend(self, size: int) -> None:
        """A batch of `size` bytes has left."""
        self._sent_batches += 1
        self._sent_bytes += size

    def restore(self, batches: int, size: int) -> None:
        """The receiver has processed so many batches and bytes in total. Raises ProtocolError if they were never sent, or already back."""
        if not (self._done_batches <= batches <= self._sent_batches and self._done_bytes <= size <= self._sent_bytes):
            raise ProtocolError(
                f"credit for {batches} batches, {size} bytes came back in total; before it {self._done_batches}, {self._done_bytes} "
                f"had come back, and {self._sent_batches}, {self._sent_bytes} were sent"
            )
        self._done_batches, self._done_bytes = batches, size


class ReceiverCredit:
    """What the receiver of a channel holds unprocessed, and has processed but not yet granted again."""

    def __init__(self, limits: ChannelLimits) -> None:
        self._limits = limits
        self._waiting: deque[int] = deque()
        self._under_way_batches = self._under_way_bytes = 0
        self._done_batches = self._done_bytes = 0
        self._granted_batches = self._granted_bytes = 0

    def arrived(self, size: int) -> None:
        """A batch of `size` bytes has come in. Raises ProtocolError if the sender had no credit for it."""
        batches, total = self._under_way_batches + 1, self._under_way_bytes + size
        if batches > 1 and (batches > self._limits.credit_batches or total > self._limits.credit_bytes):
            raise ProtocolError(f"a batch of {size} bytes came in without credit: {batches} batches, {total} bytes would be under way")
        self._under_way_batches, self._under_way_bytes = batches, total
        self._waiting.append(size)

    def processed(self) -> bool:
        """The oldest waiting batch has been processed. Whether enough has gathered for a grant that must not wait.

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
        """Batches and bytes processed in total, to be sent to the sender now."""
        self._under_way_batches -= self._done_batches - self._granted_batches
        self._under_way_bytes -= self._done_bytes - self._granted_bytes
        self._granted_batches, self._granted_bytes = self._done_batches, self._done_bytes
        return self._done_batches, self._done_bytes
