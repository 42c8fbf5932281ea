"""The state of sessions and count windows in a backend: a key's complete series is one value, read and written by the batch.

An index in memory holds a lower bound of the positions of each key, so that `take_before` reads no other keys. A key whose state
changed its owner without being sent has the lowest bound until it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....state.backends.base import SNAPSHOT_CHUNK
from ....state.key_index import DictIndex
from ....state.slots import Slots
from ....state.words import Where
from ...aggregates.binding import Binding
from ...aggregates.partial_aggregates import PartialAggregates, PartialAggregator
from ...batch import Batch
from ...context import Context
from ...protocol.routing import Move
from ..base import StateTransfer
from ..series import NOWHERE, Codes, FoundRows, Positions, Series, SeriesRows
from .partial_rows import PartialRows
from .stored_rows import BackendKeys, StoredRows, ToBatch
from .stored_state import StoredState

_Piece = tuple[PartialAggregates, Positions]
_LOWEST = -(2**63)
_NO_ROWS = SeriesRows(NOWHERE, NOWHERE, PartialAggregates((), NOWHERE, ()))


class StoredSeries(StoredState, Series):
    """Series in a backend. A batch costs as much as the series of its distinct keys, independent of the number of all keys."""

    def __init__(self, aggregator: PartialAggregator, context: Context, *, falls_due: bool) -> None:
        self.aggregator = aggregator
        self._form = PartialRows(aggregator)
        super().__init__(StoredRows(context, aggregator.keys, self._sent, self._form.about))
        self._places: BackendKeys = [], []
        """The places of the keys that were read."""
        self._found: tuple[FoundRows, list[bytes]]
        """The rows that were found there, and their bytes."""
        self._bounds = PositionBounds(self._rows) if falls_due else None

    def read(self, keys: Sequence[pa.Array]) -> FoundRows:
        return self._read_at(self._rows.places(keys))

    def write(self, rows: SeriesRows, kept: Where = NOWHERE) -> None:
        groups, keys = self._places
        found, there = self._found
        packed = [there[place] for place in kept.tolist()] + (self._form.pack(rows.partial) if len(rows.codes) else [])
        codes, at = np.concatenate([found.codes[kept], rows.codes]), np.concatenate([found.positions[kept], rows.positions])
        series: list[list[bytes]] = [[] for _ in keys]
        for code, position, row in zip(codes.tolist(), at.astype("<i8").view("V8").tolist(), packed, strict=True):
            series[code] += position, row
        full = [place for place, one in enumerate(series) if one]
        gone = [place for place, one in enumerate(series) if not one]
        self._rows.put(([groups[i] for i in full], [keys[i] for i in full]), [msgpack.packb(series[i]) for i in full])
        self._rows.backend.delete_many([groups[i] for i in gone], [keys[i] for i in gone])
        if self._bounds is not None:
            lowest = np.full(len(keys), np.iinfo(np.int64).max)
            np.minimum.at(lowest, codes, at)
            self._bounds.set([(groups[i], keys[i]) for i in full], lowest[full])
            self._bounds.drop([(groups[i], keys[i]) for i in gone])

    def take_before(self, position: int) -> Iterator[_Piece]:
        if self._bounds is None:
            raise ValueError("series were opened as such that never fall due")
        due = self._bounds.below(position)
        for first in range(0, len(due), SNAPSHOT_CHUNK):
            some = due[first : first + SNAPSHOT_CHUNK]
            found = self._read_at(([group for group, _ in some], [key for _, key in some]))
            if not len(found):  # the keys' bounds arrived with another worker's names, but their state is gone
                self._bounds.drop(some)
                continue
            taken = found.positions < position
            where = np.flatnonzero(taken)
            rows = found.at(where) if len(where) else None
            self.write(_NO_ROWS, np.flatnonzero(~taken))
            if rows is not None:
                of = pa.array(rows.codes)
                keys = tuple(column.take(of) for column in self._rows.columns([key for _, key in some]))
                yield replace(rows.partial, keys=keys), rows.positions

    def install(self, chunk: Batch) -> None:
        if not self._form.learned(chunk, self._rows):
            super().install(chunk)
        elif self._bounds is not None:
            groups, keys = self._rows.places(chunk.rows.columns)
            self._bounds.set(list(zip(groups, keys, strict=True)), np.full(len(keys), _LOWEST))

    def depart(self, move: Move) -> StateTransfer:
        if self._bounds is not None:
            self._bounds.drop_moving(move)
        return super().depart(move)

    def _read_at(self, places: BackendKeys) -> FoundRows:
        codes, positions, rows = _taken_apart(self._rows.get(places))
        found = FoundRows(codes, positions, lambda where: self._form.unpack((), [rows[place] for place in where.tolist()]))
        self._places, self._found = places, (found, rows)
        return found

    def _saving(self) -> ToBatch:
        binding = self.aggregator.binding

        def saved(columns: list[pa.Array], values: list[bytes]) -> Batch:
            partial, positions = self._unpacked(columns, values, binding)
            return self.aggregator.to_batch(partial, None, positions, binding)

        return saved

    def _sent(self, columns: list[pa.Array], values: list[bytes]) -> Batch:
        return self._form.sent(*self._unpacked(columns, values))

    def _unpacked(self, columns: list[pa.Array], values: list[bytes], binding: Binding | None = None) -> _Piece:
        """Return the rows of the series of these keys."""
        codes, positions, rows = _taken_apart(values)
        of = pa.array(codes)
        return self._form.unpack([column.take(of) for column in columns], rows, binding), positions


class PositionBounds:
    """Lower bounds of the positions of the keys that are here, by their group and key in the backend."""

    def __init__(self, rows: StoredRows) -> None:
        self._rows = rows
        self._slots = Slots(DictIndex())
        self._bounds: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    def set(self, places: list[Any], bounds: npt.NDArray[np.int64]) -> None:
        """Set the bounds of these distinct keys."""
        where = self._slots.find(places, lambda fresh: self._rows.hashes([places[place][1] for place in fresh.tolist()]))
        more = self._slots.capacity - len(self._bounds)
        if more > 0:
            self._bounds = np.concatenate([self._bounds, np.zeros(more, np.int64)])
        self._bounds[where] = bounds

    def drop(self, places: list[Any]) -> None:
        """Forget these keys."""
        where = self._slots.known(places)
        if len(where):
            self._slots.remove(where)

    def drop_moving(self, move: Move) -> None:
        """Forget the keys that leave with `move`: another worker may change their state from now on."""
        key_groups = self._rows.context.key_groups
        where = self._slots.where(move.touches(key_groups), key_groups, lambda hashes: move.selects(hashes, key_groups))
        if len(where):
            self._slots.remove(where)

    def below(self, position: int) -> list[Any]:
        """Return the keys with a lower bound than `position`."""
        where: Where = np.flatnonzero(self._slots.live & (self._bounds < position))
        places: list[Any] = self._slots.keys(where)
        return places


def _taken_apart(values: Sequence[bytes | None]) -> tuple[Codes, Positions, list[bytes]]:
    """Return, for each row of these series, the number of its series, its position, and the row."""
    codes, positions, rows = list[int](), list[bytes](), list[bytes]()
    for code, value in enumerate(values):
        if value is not None:
            series = msgpack.unpackb(value)
            positions += series[::2]
            rows += series[1::2]
            codes += [code] * (len(series) // 2)
    return np.array(codes, np.int64), np.frombuffer(b"".join(positions), "<i8").astype(np.int64), rows
