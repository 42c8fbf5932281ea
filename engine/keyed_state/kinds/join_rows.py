"""The state of a join: the rows of both sides that may still find a partner, or are not decided.

Rows are appended, and forgotten by their due time; none is changed. So a checkpoint adds the rows that arrived, and a restore
skips those that are no longer needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from ...batch import Batch
from ...context import Context
from ...errors import RecordError
from ...joins.block import Block
from ...joins.key_types import KeyKinds
from ...joins.row_log import RowLog
from ...joins.segment import sorted_rows
from ...joins.sides import LEFT, RIGHT, Side, key_names, other, side_of
from ...keys.encoding import key_column, key_hashes
from ...protocol.routing import Move, Part, among
from ...snapshots.chain import replacing
from ...snapshots.changes import Changes
from ...types.exact import NoCommonType, common
from ..base import KeyedState, StateTransfer
from .join_changes import Came, JoinChanges, KeysLeft, staying
from .opening import open_row_place
from .row_store import no_rows

CHUNK = 32_768
"""The rows of a chunk of a snapshot."""

TIME, DUE = "__time", "__due"

GROUPS = {LEFT: 0, RIGHT: 1}
"""The backend's group of each side."""


class JoinRows(KeyedState):
    """The rows of both sides, with the names of each side's key columns in `keys`.

    `columns`: those of a side's rows, from the plan or the side's first batch.
    """

    def __init__(
        self,
        context: Context,
        left_keys: tuple[str, ...],
        right_keys: tuple[str, ...],
        schemas: Mapping[Side, pa.Schema] = MappingProxyType({}),
    ) -> None:
        self._context = context
        self.keys = {LEFT: left_keys, RIGHT: right_keys}
        self.logs = {LEFT: RowLog(), RIGHT: RowLog()}
        self.columns: dict[Side, pa.Schema] = {}
        self._place = open_row_place(context, len(self.logs))
        self._kinds = KeyKinds(context.name, left_keys, right_keys)
        self._came: list[Came] = []
        self._left: list[KeysLeft] = []
        self._noting = False
        self._guests: frozenset[Part] = frozenset()
        """Split keys that have their home at another worker."""
        self._planned = frozenset(schemas)
        for side, schema in schemas.items():
            self._note(side, schema)

    def learn(self, side: Side, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Note the columns of a side's rows, and return these in the side's order of columns.

        A column's type widens with the rows. Raises RecordError for other columns than the plan's, and for types of a column that
        no type holds.
        """
        known = self.columns.get(side)
        if known is None or not known.equals(rows.schema):
            if known is not None and known.names != rows.schema.names:
                rows = self._ordered(side, known, rows)
            self._note(side, rows.schema if known is None else self._widened(side, known, rows.schema))
        return rows

    def _note(self, side: Side, schema: pa.Schema) -> None:
        self._kinds.learn(side, [schema.field(name).type for name in self.keys[side]])
        self.columns[side] = schema

    def _ordered(self, side: Side, known: pa.Schema, rows: pa.RecordBatch) -> pa.RecordBatch:
        if sorted(known.names) == sorted(rows.schema.names):
            return rows.select(known.names)
        if side not in self._planned:
            return rows
        found, expected = ", ".join(rows.schema.names), ", ".join(known.names)
        problem = f"its {side.dealt} stream has the columns {found}, but the plan has {expected}: convert them by select or schema="
        raise RecordError(self._context.name, problem)

    def _widened(self, side: Side, known: pa.Schema, schema: pa.Schema) -> pa.Schema:
        """Return the columns with types that hold both those so far and these."""
        if schema.names != known.names:
            return schema
        try:
            return common([known, schema])
        except NoCommonType as error:
            problem = f"its {side.dealt} stream's {error}: give it one type, for example by cast or schema="
            raise RecordError(self._context.name, problem) from error

    def append(self, side: Side, block: Block) -> None:
        """Keep these rows, sorted as in a segment, until they are forgotten."""
        if len(block):
            held = self._place.keep(GROUPS[side], block.held)
            block = Block(held, block.hashes, block.times, block.due)
            self.logs[side].append(block)
            if self._noting:
                self._came.append((side, block))

    def due_in(self, side: Side, start: int, end: int) -> Iterator[Block]:
        """Yield the rows with a due time in [start, end), some at a time, in memory."""
        return chain.from_iterable(block.pieces() for block in self.logs[side].due_in(start, end))

    def install(self, chunk: Batch) -> None:
        side = side_of(chunk.rows.schema)
        rows = self.learn(side, side.rows(chunk.rows))
        hashes = key_hashes([key_column(rows, key, self._context.name) for key in self.keys[side]], self._context.name)
        times, due = (chunk.rows.column(name).to_numpy() for name in (TIME, DUE))
        self.append(side, sorted_rows(Block.of(rows, hashes, times, due)))

    def expect(self, move: Move) -> None:
        self._guests |= {*move.copies}

    def reported(self, side: Side, block: Block) -> Block:
        """Return the rows, for example late ones, to report at this worker: copied rows are reported by the key's home."""
        return block.filter(~among(self._guests, block.hashes, other(side).dealt)) if self._guests else block

    def depart(self, move: Move) -> StateTransfer:
        """Cut the rows out at once. For keys that are no longer shared, send the dealt rows only: the home has the others."""
        self._guests -= {*move.returns}
        key_groups, left = self._context.key_groups, list[Came]()
        for side, log in self.logs.items():
            left += [(side, block) for block in log.cut_out(lambda block: move.selects(block.hashes, key_groups))]
        if self._noting:
            self._came = list(staying(self._came, move, key_groups))
            self._left += [KeysLeft(self._distinct_keys(side, block), move) for side, block in left]
        return _RowTransfer(self, [*self._without_copies(left, move.returns), *self._copies(move.copies)])

    def _without_copies(self, left: Sequence[Came], parts: Sequence[Part]) -> Iterator[Came]:
        """Yield rows that were cut out, without the copied rows of the keys of `parts`, which are forgotten."""
        for side, block in left:
            copied = among(parts, block.hashes, other(side).dealt)
            if copied.any():
                block.held.forget(copied)
            if not copied.all():
                yield side, block.filter(~copied)

    def _copies(self, parts: Sequence[Part]) -> Iterator[Came]:
        """Yield the copied rows of the keys of `parts`, in memory."""
        for side, log in self.logs.items() if parts else ():
            for block in log.blocks():
                mask = among(parts, block.hashes, other(side).dealt)
                if mask.any():
                    found = block.filter(mask)
                    yield side, Block.of(found.rows, found.hashes, found.times, found.due)

    def snapshot(self) -> Iterator[Batch]:
        return self._chunks([(side, block) for side, log in self.logs.items() for block in log.blocks()], self._place.reading())

    def changes(self) -> Changes | None:
        changes = JoinChanges(tuple(self._came), tuple(self._left), self._context.key_groups)
        known, self._noting = self._noting, True
        self._came, self._left = [], []
        return changes if known else None

    def delta(self, changes: Changes) -> Iterator[Batch]:
        assert isinstance(changes, JoinChanges)
        names = key_names(len(self.keys[LEFT]))
        gone = (Batch(replacing(pa.RecordBatch.from_arrays(list(left.keys), names=list(names)), names)) for left in changes.left)
        return chain(gone, self._chunks(changes.came, self._place.reading()))

    def check(self, schema: pa.Schema) -> None:
        if TIME not in schema.names or DUE not in schema.names:
            raise TypeError("it is not of a join")

    @property
    def operator(self) -> str:
        """Return the operator's name, for errors."""
        return self._context.name

    @property
    def nbytes(self) -> int:
        return self._place.nbytes + sum(log.nbytes for log in self.logs.values())

    def close(self) -> None:
        self._place.close()

    def chunk(self, side: Side, block: Block) -> Batch:
        """Return rows as a chunk of state."""
        rows = block.rows
        tagged = side.form([rows.column(key) for key in self.keys[side]], rows)
        columns = [*tagged.columns, pa.array(block.times), pa.array(block.due)]
        return Batch(pa.RecordBatch.from_arrays(columns, names=[*tagged.schema.names, TIME, DUE]))

    def column_chunks(self) -> Iterator[Batch]:
        """Yield a chunk without rows for each side with known columns: their next owner may never get a row of that side."""
        nothing = np.zeros(0, np.int64)
        for side, schema in list(self.columns.items()):
            yield self.chunk(side, Block.of(no_rows(schema), nothing.view(np.uint64), nothing, nothing))

    def _chunks(self, blocks: Sequence[Came], reading: Any) -> Iterator[Batch]:
        """Return the columns that are known now, and then the rows of these blocks that are kept since `reading` began.

        The iterator ends `reading` with the last chunk.
        """
        return chain(list(self.column_chunks()), self._rows(blocks, reading))

    def _rows(self, blocks: Sequence[Came], reading: Any) -> Iterator[Batch]:
        for side, block in blocks:
            for first in range(0, len(block), CHUNK):
                piece = block.slice(first, min(CHUNK, len(block) - first))
                there, rows = piece.held.kept()
                if there.any():
                    yield self.chunk(side, Block.of(rows, piece.hashes[there], piece.times[there], piece.due[there]))

    def _distinct_keys(self, side: Side, block: Block) -> list[pa.Array]:
        _, first = np.unique(block.hashes, return_index=True)
        rows = block.held.reached(first)
        return [rows.column(key) for key in self.keys[side]]


class _RowTransfer(StateTransfer):
    """A transfer of rows that were cut out. A row is forgotten once it is in a chunk."""

    def __init__(self, state: JoinRows, left: list[Came]) -> None:
        self._state, self._left = state, left
        self._columns = list(state.column_chunks())

    def next_chunk(self, keys: int) -> Batch | None:
        if self._columns:
            return self._columns.pop()
        if not self._left:
            return None
        side, block = self._left.pop()
        if len(block) > keys:
            self._left.append((side, block.slice(keys, len(block) - keys)))
            block = block.slice(0, keys)
        return self._taken(side, block)

    def fetch(self, columns: Sequence[pa.Array]) -> list[Batch]:
        wanted = key_hashes(columns, self._state.operator)
        found, left = list[Batch](), list[Came]()
        for side, block in self._left:
            mask = np.isin(block.hashes, wanted)
            if mask.any():
                found.append(self._taken(side, block.filter(mask)))
            if not mask.all():
                left.append((side, block.filter(~mask)))
        self._left = left
        return found

    def _taken(self, side: Side, block: Block) -> Batch:
        chunk = self._state.chunk(side, block)
        block.held.forget(np.ones(len(block), np.bool_))
        return chunk
