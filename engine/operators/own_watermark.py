"""The base of operators whose readers see the operator's own watermark, and not that of the task."""

from __future__ import annotations

from abc import abstractmethod

from ..context import Context, Emit
from .base import Operator, OperatorInstance


class OwnWatermark(Operator):
    """An operator with a watermark of its own."""

    @abstractmethod
    def open(self, context: Context) -> OwnWatermarkInstance:
        """Create an instance, as for every operator."""


class OwnWatermarkInstance(OperatorInstance):
    """An instance with a `watermark`, which the task passes on to the operators and exchanges behind it after each event."""

    @property
    @abstractmethod
    def watermark(self) -> int:
        """Return a lower bound of the times of later rows, in microseconds; `MIN_TIME` before the first row.

        It only rises, except for `rewind`.
        """

    def restore(self, watermark: int) -> None:
        """Continue from a checkpoint at this watermark."""

    def rewind(self) -> None:
        """Reset the watermark: the source continues at another position, whose rows may be earlier."""

    def settle(self, emit: Emit) -> None:
        """Emit the rows that are held back: a barrier or a move of keys follows, which must not overtake them."""
