"""The base of operators that assign event times in mid-stream, which replace those of the task for all operators behind them.

The watermark of such an instance follows from the rows that it has seen, so it is right for the order of their arrival here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from ..columns import Columns
from ..context import Context
from ..updates import Updates
from .own_watermark import OwnWatermark, OwnWatermarkInstance


class OwnTime(OwnWatermark):
    """An operator that changes event times. If it `ticks`, they advance without rows."""

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return inputs[0]

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return inputs[0]

    @abstractmethod
    def open(self, context: Context) -> OwnTimeInstance:
        """Create an instance, as for every operator."""


class OwnTimeInstance(OwnWatermarkInstance):
    """An instance that assigns event times."""
