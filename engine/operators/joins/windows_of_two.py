"""The base of operators with windows over two streams: they keep the rows of both sides until their windows are complete."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch, Times
from ...context import Context, Emit
from ...joins.session_rows import SessionRows
from ...joins.sides import Side
from ...joins.window_rows import Complete, FixedWindows, WindowRows
from ...time.sessions import SessionWindows
from ...time.windows import Windows
from ..aggregation.window_bounds import timed
from ..two_inputs import TwoInputs, TwoInputsInstance


class WindowsOfTwo(TwoInputsInstance):
    """An instance whose state is the rows of both sides whose windows are not complete."""

    nulls_meet: ClassVar[bool] = False
    """True if nulls in keys are equal."""

    def __init__(self, operator: TwoInputs, context: Context, windows: Windows | SessionWindows) -> None:
        TwoInputsInstance.__init__(self, operator, context)
        self._kind = windows
        self._of_rows: WindowRows
        if isinstance(windows, SessionWindows):
            self._of_rows = SessionRows(windows.gap, self.state.keys, context.name, nulls_meet=self.nulls_meet)
        else:
            self._of_rows = FixedWindows(windows)

    @abstractmethod
    def emit_windows(self, windows: Complete, emit: Emit) -> None:
        """Emit the results of complete windows."""

    def times_of(self, side: Side, batch: Batch) -> Times:
        return timed(batch, self._kind, self.context.name)

    def due(self, side: Side, times: Times, rows: pa.RecordBatch) -> Times:
        return self._of_rows.due(times)

    def late(self, times: Times) -> npt.NDArray[np.bool_]:
        return self._of_rows.late(times, self.watermark)

    def advance(self, watermark: int, emit: Emit) -> None:
        for windows in self._of_rows.complete(self.state.logs, self.watermark, watermark):
            self.emit_windows(windows, emit)
        self.watermark = watermark
        self._of_rows.forget(self.state.logs, watermark)
