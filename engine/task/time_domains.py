"""The event-time domains of a task: that of the task, and one for each operator with a watermark of its own.

An operator that assigns event time, or that holds rows back, begins a domain: all operators and exchanges behind it in the chain,
up to the next such operator. Invariant: the watermark of a domain rises, and reaches `MAX_TIME` when the operator that begins it has
emitted its last row.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..operators.own_watermark import OwnWatermark
from ..plan.task_spec import TaskSpec
from ..protocol.elements import MIN_TIME

TASK = -1
"""The domain of the task's own event time; the others are named by the position of the operator that begins them."""


class TimeDomains:
    """The domains of a task. `reached`: the watermark of each but the task's, by the position of its operator."""

    def __init__(self, spec: TaskSpec) -> None:
        self._begins = [isinstance(chained.operator, OwnWatermark) for chained in spec.chain]
        self._of: list[int] = []
        for chained in spec.chain:
            self._of.append(self.behind(chained.inputs[0][0]) if chained.inputs else TASK)
        self.of_exchanges = [self.behind(exchange.source[0]) for exchange in spec.exchanges]
        self.reached = {position: MIN_TIME for position, begins in enumerate(self._begins) if begins}

    def behind(self, position: int) -> int:
        """Return the domain of readers of the operator at `position`."""
        return position if self._begins[position] else self._of[position]

    def operators(self, domain: int) -> Iterator[int]:
        """Return the positions of the operators in a domain."""
        return (position for position, own in enumerate(self._of) if own == domain)

    def rises(self, domain: int, watermark: int) -> bool:
        """Advance to `watermark`; return True if it is later than the domain's."""
        if watermark <= self.reached[domain]:
            return False
        self.reached[domain] = watermark
        return True
