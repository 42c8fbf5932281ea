"""The base of operators with keyed state: their keys, their state, and the counts of their load."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..context import Context
from ..joins.sides import Side
from ..keyed_state.base import KeyedState
from ..keyed_state.pending import PendingState
from ..keys.encoding import encode_keys, key_column, key_groups, key_values
from ..keys.load import largest
from ..protocol.read_value import ReadValue
from ..protocol.split_route import Dealt
from ..state_description import StateDescription
from ..updates import Updates
from .base import Operator, OperatorInstance
from .state_reader import StateReader

HOTTEST = 32
"""The number of hottest keys of a batch that are counted individually."""
SAMPLE = 1024


class KeyedOperator(Operator):
    """An operator whose input is partitioned by the columns `keys`, so that every record of a key reaches the same worker."""

    keys: tuple[str, ...]

    takes_updates = False

    needs_columns: ClassVar[bool] = False
    """True if every instance must know the columns of its inputs, also without a row of its own.

    It then also gets batches without rows.
    """

    readable: ClassVar[bool] = False
    """True if its state has one value per key, which instances can `read`."""

    def reader(self) -> StateReader:
        """Return the reader of the saved state of a `readable` operator."""
        raise NotImplementedError

    @property
    def dealable(self) -> tuple[Dealt, ...]:
        """Return the sides whose rows may be dealt over several workers when a hot key is split: only joins have any."""
        return ()

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return None

    @abstractmethod
    def state_description(self) -> StateDescription:
        """Describe its state, for checkpoints."""

    @abstractmethod
    def open(self, context: Context) -> KeyedInstance:
        """Create an instance, as for every operator."""


class KeyedInstance(OperatorInstance):
    """An instance with keyed state in `state`, which the task and the hand-over move, save and restore.

    `pending`: the part of a checkpoint's state that is still to be installed.
    """

    merges_state = False
    """True if a record can be processed before its key's state arrives, because the state can be merged later."""

    def __init__(self, context: Context, keys: tuple[str, ...], state: KeyedState) -> None:
        super().__init__(context)
        self.keys, self.state = keys, state
        self.pending = PendingState(state, context.name)

    @property
    def awaits(self) -> tuple[Side, ...]:
        """Return the sides of a join whose columns must be known before event time advances, and are not."""
        return ()

    @property
    def needs_state(self) -> bool:
        """True if a record can be processed only by the worker that has its key's state."""
        return self.state.passes_on or not self.merges_state

    def close(self) -> None:
        self.state.close()

    def key_types(self) -> Sequence[pa.DataType]:
        """Return the types of the key columns of a readable state, none before its first key."""
        return ()

    def read(self, key: Sequence[pa.Array]) -> ReadValue | None:
        """Return the value of the key in these key columns of one row, in the types of `key_types`; None if it has none.

        Called between two batches, for `readable` operators. Changes nothing.
        """
        raise NotImplementedError

    def note_load(self, columns: Sequence[pa.Array], counts: npt.NDArray[np.int64]) -> None:
        """Count `counts` records for each of the distinct keys in `columns`, if the load is due."""
        if self.context.load.due():
            self._note(columns, counts)

    def note_rows(self, rows: pa.RecordBatch, side: Dealt | None = None) -> None:
        """Count the load of a batch whose keys were not encoded; hot keys are estimated from its first rows.

        `side`: the side of a join that it came from.
        """
        load, name = self.context.load, self.context.name
        if not load.due():
            return
        if rows.num_rows <= SAMPLE:
            keys = encode_keys(rows, self.keys, name)
            self._note(keys.columns, np.bincount(keys.codes, minlength=keys.count), side)
            return
        load.add(key_groups(self.key_columns(rows), self.context.key_groups, name))
        keys = encode_keys(rows.slice(0, SAMPLE), self.keys, name)
        self._note_hottest(keys.columns, np.bincount(keys.codes, minlength=keys.count) * rows.num_rows // SAMPLE, side)

    def key_columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the key columns of `rows`."""
        return [key_column(rows, key, self.context.name) for key in self.keys]

    def _note(self, columns: Sequence[pa.Array], counts: npt.NDArray[np.int64], side: Dealt | None = None) -> None:
        self.context.load.add(key_groups(list(columns), self.context.key_groups, self.context.name), counts)
        self._note_hottest(columns, counts, side)

    def _note_hottest(self, columns: Sequence[pa.Array], counts: npt.NDArray[np.int64], side: Dealt | None = None) -> None:
        if len(counts) > HOTTEST:
            top = largest(counts, HOTTEST)
            where = pa.array(top)
            columns, counts = [c.take(where) for c in columns], counts[top]
        self.context.load.add_keys(key_values(columns), counts.tolist(), side)
