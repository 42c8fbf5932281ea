"""The base of operators that assign event times in mid-stream, which replace those of the task for all operators behind them.

The watermark of such an instance follows from the rows that it has seen, so it is right for the order of their arrival here.
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
    """An operator that changes event times. `ticks`: they advance without rows."""

    ticks: ClassVar[bool] = False

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return inputs[0]

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return inputs[0]

    @abstractmethod
    def open(self, context: Context) -> OwnTimeInstance:
        """Create an instance, as for every operator."""


class OwnTimeInstance(OperatorInstance):
    """An instance with a `watermark`, which the task passes on to the operators and exchanges behind it after each batch."""

    @property
    @abstractmethod
    def watermark(self) -> int:
        """Return a lower bound of the times of later rows, in microseconds; `MIN_TIME` before the first row.

        It only rises, except for `rewind`.
        """

    def rewind(self) -> None:
        """Reset the watermark: the source continues at another position, whose rows may be earlier."""

    def tick(self) -> None:
        """Note that time has passed without a row."""
