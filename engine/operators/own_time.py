"""The base of operators that give rows an event time of their own: it replaces that of the task for all that is behind them.

The watermark of such an instance comes from the rows that it has seen, so it is right for the order in which they came to this worker.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from ..columns import Columns
from ..context import Context
from ..updates import Updates
from .base import Operator, OperatorInstance


class OwnTime(Operator):
    """An operator whose rows have other event times than those that it takes. `ticks`: whether these go on without rows."""

    ticks: ClassVar[bool] = False

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return inputs[0]

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return inputs[0]

    @abstractmethod
    def open(self, context: Context) -> OwnTimeInstance:
        """As for every operator."""


class OwnTimeInstance(OperatorInstance):
    """The task asks for `watermark` after each batch, and passes it on to the operators and exchanges behind this one."""

    @property
    @abstractmethod
    def watermark(self) -> int:
        """No later row gets an earlier time than this, in microseconds; `MIN_TIME` before the first row. Rises, but for `rewind`."""

    def rewind(self) -> None:
        """The task goes on from another position of its source, whose rows may be earlier than those that it has given."""

    def tick(self) -> None:
        """Time has passed without a row."""
