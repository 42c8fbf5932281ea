"""The base of operators that take the windows of two streams: they keep the rows of both sides until their windows are complete."""

from __future__ import annotations

from abc import abstractmethod

from ..batch import Batch
from ..joins.block import Block
from ..joins.segment import sorted_rows
from ..joins.session_rows import SessionRows
from ..joins.sides import key_names, side_of
from ..joins.window_rows import Complete, FixedWindows, WindowRows
from ..keyed_state.join_rows import JoinRows
from ..keys.encoding import key_hashes
from ..protocol.elements import MIN_TIME
from ..time.sessions import SessionWindows
from ..time.windows import Windows
from .base import Context, Emit
from .join import LATE
from .keyed import KeyedInstance
from .window_bounds import timed


class WindowsOfTwo(KeyedInstance):
    """Its state is the rows of both sides whose windows are not complete. `left_keys`, `right_keys`: the key columns, in pairs."""

    state: JoinRows

    def __init__(
        self, context: Context, left_keys: tuple[str, ...], right_keys: tuple[str, ...], windows: Windows | SessionWindows
    ) -> None:
        KeyedInstance.__init__(self, context, key_names(len(left_keys)), JoinRows(context, left_keys, right_keys))
        self._kind = windows
        self._of_rows: WindowRows
        if isinstance(windows, SessionWindows):
            self._of_rows = SessionRows(windows.gap, self.state.keys, context.name)
        else:
            self._of_rows = FixedWindows(windows)
        self.watermark = MIN_TIME

    @abstractmethod
    def emit_windows(self, windows: Complete, emit: Emit) -> None:
        """Emit the results of complete windows."""

    def process(self, batch: Batch, emit: Emit) -> None:
        side = side_of(batch.rows.schema)
        rows = side.rows(batch.rows)
        self.state.learn(side, rows.schema)
        if not batch.num_rows:
            return
        self.note_rows(batch.rows)
        times = timed(batch, self._kind, self.context.name)
        hashes = key_hashes(self.key_columns(batch.rows), self.context.name)
        block = sorted_rows(Block.of(rows, hashes, times, self._of_rows.due(times)))
        late = self._of_rows.late(block.times, self.watermark)
        if late.any():
            gone = block.filter(late)
            self.late_records += len(gone)
            emit(Batch(gone.rows, gone.times), LATE[side])
            block = block.filter(~late)
        self.state.append(side, block)

    def advance(self, watermark: int, emit: Emit) -> None:
        for windows in self._of_rows.complete(self.state.logs, self.watermark, watermark):
            self.emit_windows(windows, emit)
        self.watermark = watermark
        self._of_rows.forget(self.state.logs, watermark)
