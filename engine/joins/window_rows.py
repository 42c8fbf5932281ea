"""The windows of two streams: which rows are late, and which windows are complete, with the rows of both sides.

A kind of windows keeps nothing itself: what is complete follows from the rows' times and the watermark alone. So only rows are moved and
saved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Times
from ..errors import RecordError
from ..keys.encoding import encode_keys
from ..protocol.elements import MAX_TIME, MIN_TIME
from ..time.windows import Windows
from .block import Block
from .key_types import common_type
from .matching import plain
from .row_log import RowLog
from .sides import Side, key_names

Logs = Mapping[Side, RowLog]
Keys = Mapping[Side, tuple[str, ...]]
"""The names of the key columns of each side."""

Groups = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Complete:
    """Rows of complete windows: `sides` has blocks in memory, each with the number of every row's window.

    `starts`, `ends`, `times`: of each window, its bounds and the event time of its results.
    """

    starts: Times
    ends: Times
    times: Times
    sides: Mapping[Side, Sequence[tuple[Block, Groups]]]

    def by_key(self, keys: Keys, operator: str) -> tuple[Complete, list[pa.Array]]:
        """The same with a window for each key, and the keys' columns, one row per window."""
        parts = [(side, block, groups) for side, blocks in self.sides.items() for block, groups in blocks]
        key, columns = key_codes([(side, block) for side, block, _ in parts], keys, operator)
        window = np.concatenate([groups for *_, groups in parts])
        pairs, first, codes = np.unique(np.stack([window, key]), axis=1, return_index=True, return_inverse=True)
        codes, sides, begin = codes.reshape(-1), dict[Side, list[tuple[Block, Groups]]](), 0
        for side, block, _ in parts:
            sides.setdefault(side, []).append((block, codes[begin : begin + len(block)]))
            begin += len(block)
        of = pairs[0]
        rows = pa.array(first)
        return Complete(self.starts[of], self.ends[of], self.times[of], sides), [column.take(rows) for column in columns]


class WindowRows(ABC):
    """One kind of windows."""

    @abstractmethod
    def due(self, times: Times) -> Times:
        """The due time of rows with these event times."""

    @abstractmethod
    def late(self, times: Times, watermark: int) -> npt.NDArray[np.bool_]:
        """Which rows with these event times are late."""

    @abstractmethod
    def complete(self, logs: Logs, after: int, until: int) -> Iterator[Complete]:
        """The windows with rows that are complete at the watermark `until`, and were not at `after`."""

    @abstractmethod
    def forget(self, logs: Logs, watermark: int) -> None:
        """Forget rows that are in complete windows only."""


class FixedWindows(WindowRows):
    """Tumbling and sliding windows; the due time of a row is its event time."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    def due(self, times: Times) -> Times:
        return times

    def late(self, times: Times, watermark: int) -> npt.NDArray[np.bool_]:
        windows = self._windows
        last_end = times - (times - windows.offset) % windows.slide + windows.size
        mask: npt.NDArray[np.bool_] = last_end <= watermark
        return mask

    def complete(self, logs: Logs, after: int, until: int) -> Iterator[Complete]:
        for end in self._ends(logs, after, until):
            start = end - self._windows.size
            blocks = {side: [piece for block in log.due_in(start, end) for piece in block.pieces()] for side, log in logs.items()}
            sides = {side: [(block, np.zeros(len(block), np.int64)) for block in found] for side, found in blocks.items()}
            yield Complete(np.array([start]), np.array([end]), np.array([end - 1]), sides)

    def forget(self, logs: Logs, watermark: int) -> None:
        for log in logs.values():
            log.forget(self._earliest(watermark))

    def _earliest(self, watermark: int) -> int:
        """The earliest time in a window that is not complete."""
        return watermark if watermark == MAX_TIME else max(watermark - self._windows.size, MIN_TIME)

    def _ends(self, logs: Logs, after: int, until: int) -> list[int]:
        """The ends in (after, until] of windows with rows, rising."""
        windows = self._windows
        if (after - windows.offset - windows.size) // windows.slide == (until - windows.offset - windows.size) // windows.slide:
            return []
        slide, ends = windows.slide, set[int]()
        times = [log.due_times(self._earliest(after), until) for log in logs.values()]
        for pane in np.unique(windows.pane_of(np.concatenate(times))).tolist():
            first = windows.first_end(pane)
            if first <= after:
                first += ((after - first) // slide + 1) * slide
            ends.update(range(first, min(windows.last_end(pane), until) + 1, slide))
        return sorted(ends)


def key_codes(parts: Sequence[tuple[Side, Block]], keys: Keys, operator: str) -> tuple[npt.NDArray[np.integer], list[pa.Array]]:
    """A number per row, equal for equal keys, and the key columns, of all rows of blocks of both sides."""
    names = key_names(len(next(iter(keys.values()))))
    tables = [(side, block.rows, keys[side]) for side, block in parts]
    formed = [[plain(side.form_key(rows.column(of[place]))) for side, rows, of in tables] for place in range(len(names))]
    columns = [_concatenated(pieces, operator) for pieces in formed]
    return encode_keys(pa.RecordBatch.from_arrays(columns, names=list(names)), names, operator).codes, columns


def _concatenated(columns: Sequence[pa.Array], operator: str) -> pa.Array:
    """One column of the type for all. Raises RecordError for keys that don't fit it."""
    kind = columns[0].type
    for column in columns[1:]:
        kind = common_type(kind, column.type) or kind
    try:
        return pa.concat_arrays([pa.nulls(len(column), kind) if pa.types.is_null(column.type) else column.cast(kind) for column in columns])
    except pa.ArrowInvalid as error:
        raise RecordError(operator, f"a key of one side does not fit {kind}, the type for both sides: {error}") from error
