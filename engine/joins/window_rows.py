"""The windows of two streams: finds late rows, and complete windows with the rows of both sides.

Windows have no state of their own: the rows' times and the watermark alone decide which windows are complete. So only rows are
moved and saved.
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
from ..keys.encoding import compared_keys, encode_keys, joined_keys
from ..protocol.elements import MAX_TIME, MIN_TIME
from ..time.windows import Windows
from .block import Block
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

    `starts`, `ends`, `times`: the bounds of each window and the event time of its results.
    """

    starts: Times
    ends: Times
    times: Times
    sides: Mapping[Side, Sequence[tuple[Block, Groups]]]

    def by_key(self, keys: Keys, operator: str) -> Iterator[tuple[Complete, list[pa.Array]]]:
        """Yield the same with a window for each key, and the key columns, one row per window.

        Yields several parts if no type holds all keys: times of different units, some beyond the range of the finer one.
        """
        parts = [(side, block, groups) for side, blocks in self.sides.items() for block, groups in blocks]
        key, pieces = key_codes([(side, block) for side, block, _ in parts], keys, operator)
        window = np.concatenate([groups for *_, groups in parts])
        pairs, first, codes = np.unique(np.stack([window, key]), axis=1, return_index=True, return_inverse=True)
        codes, sides, begin = codes.reshape(-1), dict[Side, list[tuple[Block, Groups]]](), 0
        for side, block, _ in parts:
            sides.setdefault(side, []).append((block, codes[begin : begin + len(block)]))
            begin += len(block)
        of = pairs[0]
        complete = Complete(self.starts[of], self.ends[of], self.times[of], sides)
        names = next(iter(keys.values()))
        try:
            columns = [joined_keys(of_blocks, name, operator) for of_blocks, name in zip(pieces, names, strict=True)]
        except RecordError:
            yield from complete._by_key_types(first, pieces)
        else:
            rows = pa.array(first)
            yield complete, [column.take(rows) for column in columns]

    def _by_key_types(self, first: npt.NDArray[np.intp], pieces: Sequence[Sequence[pa.Array]]) -> Iterator[tuple[Complete, list[pa.Array]]]:
        """Yield the windows, one for each key, by the types of the keys; `first`: the index of a row with the key of each window."""
        kinds = [tuple(piece.type for piece in of_block) for of_block in zip(*pieces, strict=True)]
        lengths = [len(piece) for piece in pieces[0]]
        for kind in dict.fromkeys(kinds):
            there = [one == kind for one in kinds]
            rows = np.repeat(there, lengths)
            mask, place = rows[first], np.cumsum(rows) - 1
            where = pa.array(place[first[mask]])
            if len(where):
                columns = [pa.concat_arrays([piece for piece, one in zip(of, there, strict=True) if one]) for of in pieces]
                yield self._some(mask), [column.take(where) for column in columns]

    def _some(self, mask: npt.NDArray[np.bool_]) -> Complete:
        """Return the windows that `mask` selects."""
        numbers = np.cumsum(mask) - 1
        sides = {side: [(block.filter(mask[of]), numbers[of[mask[of]]]) for block, of in blocks] for side, blocks in self.sides.items()}
        return Complete(self.starts[mask], self.ends[mask], self.times[mask], sides)


class WindowRows(ABC):
    """A kind of windows of two streams."""

    @abstractmethod
    def due(self, times: Times) -> Times:
        """Return the due times of rows with these event times."""

    @abstractmethod
    def late(self, times: Times, watermark: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows with these event times that are late."""

    @abstractmethod
    def complete(self, logs: Logs, after: int, until: int) -> Iterator[Complete]:
        """Yield the windows with rows that are complete at the watermark `until` and were not at `after`."""

    @abstractmethod
    def forget(self, logs: Logs, watermark: int) -> None:
        """Discard rows that are in complete windows only."""


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
        """Return the earliest time in a window that is not complete."""
        return watermark if watermark == MAX_TIME else max(watermark - self._windows.size, MIN_TIME)

    def _ends(self, logs: Logs, after: int, until: int) -> list[int]:
        """Return the ends in (after, until] of windows with rows, ascending."""
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


def key_codes(parts: Sequence[tuple[Side, Block]], keys: Keys, operator: str) -> tuple[npt.NDArray[np.integer], list[list[pa.Array]]]:
    """Return a number per row, equal for equal keys, of all rows of blocks of both sides; and each key column's piece per block.

    Raises RecordError for keys whose types have no common key type.
    """
    pieces, compared = list[list[pa.Array]](), list[pa.Array]()
    for place, name in enumerate(next(iter(keys.values()))):
        pieces.append([plain(side.form_key(block.rows.column(keys[side][place]))) for side, block in parts])
        compared += compared_keys(pieces[-1], name, operator)
    names = key_names(len(compared))
    return encode_keys(pa.RecordBatch.from_arrays(compared, names=list(names)), names, operator).codes, pieces
