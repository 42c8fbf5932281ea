"""What the sinks hand over on the driver, until the driver has it.

>>> deliveries = Deliveries([("to_list", 1)])
>>> deliveries.add([("to_list", 2)])
>>> deliveries.after(1)
(('to_list', 2),)
>>> deliveries.pending
(('to_list', 2),)
"""

from __future__ import annotations

from collections.abc import Iterable

from ..protocol.storage_answers import Delivery


class Deliveries:
    """Payloads, numbered from 0 in the order of their commits; `pending`: payloads that the driver may not have received."""

    def __init__(self, pending: Iterable[Delivery] = ()) -> None:
        self._pending = list(pending)
        self._dropped = 0

    @property
    def pending(self) -> tuple[Delivery, ...]:
        return tuple(self._pending)

    def add(self, deliveries: Iterable[Delivery]) -> None:
        """The sinks have committed more."""
        self._pending += deliveries

    def after(self, seen: int) -> tuple[Delivery, ...]:
        """Those from number `seen` on; earlier ones are dropped, since the driver has them."""
        drop = seen - self._dropped
        if drop > 0:
            del self._pending[:drop]
            self._dropped = seen
        return tuple(self._pending)
