"""What operators with keyed state share: their keys, their state, and noting where their load comes from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..keyed_state.base import KeyedState
from ..keys.encoding import encode_keys, key_column, key_groups, key_values
from .base import Context, Operator, OperatorInstance

HOTTEST = 32
"""Keys of a batch, the hottest, that are counted by name."""
SAMPLE = 1024


class KeyedOperator(Operator):
    """Its input is partitioned by the columns `keys`, so that every record of a key comes to the same worker."""

    keys: tuple[str, ...]

    @abstractmethod
    def open(self, context: Context) -> KeyedInstance:
        """As of every operator."""


class KeyedInstance(OperatorInstance):
    """An instance whose `state` holds what it keeps of its keys: the task and the hand-over move, save and restore that."""

    merges_state = False
    """Whether a record can be processed before its key's state has come, which is then merged into what there is."""

    def __init__(self, context: Context, keys: tuple[str, ...], state: KeyedState) -> None:
        super().__init__(context)
        self.keys, self.state = keys, state

    @property
    def needs_state(self) -> bool:
        """Whether a record can only be processed where its key's state is."""
        return self.state.passes_on or not self.merges_state

    def close(self) -> None:
        self.state.close()

    def note_load(self, columns: Sequence[pa.Array], counts: npt.NDArray[np.int64]) -> None:
        """Note that `counts` records came for each row of the keys in `columns`, each of which is there once; if the load is due."""
        if self.context.load.due():
            self._note(columns, counts)

    def note_rows(self, rows: pa.RecordBatch) -> None:
        """Note the load of a batch whose keys were not encoded; hot keys are estimated from its first rows."""
        load, name = self.context.load, self.context.name
        if not load.due():
            return
        load.add(key_groups(self.key_columns(rows), self.context.key_groups, name))
        sample = rows.slice(0, SAMPLE)
        keys = encode_keys(sample, self.keys, name)
        self._note_hottest(keys.columns, np.bincount(keys.codes, minlength=keys.count) * rows.num_rows // sample.num_rows)

    def key_columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The key columns of `rows`."""
        return [key_column(rows, key, self.context.name) for key in self.keys]

    def _note(self, columns: Sequence[pa.Array], counts: npt.NDArray[np.int64]) -> None:
        self.context.load.add(key_groups(list(columns), self.context.key_groups, self.context.name), counts)
        self._note_hottest(columns, counts)

    def _note_hottest(self, columns: Sequence[pa.Array], counts: npt.NDArray[np.int64]) -> None:
        top = np.argpartition(counts, -HOTTEST)[-HOTTEST:] if len(counts) > HOTTEST else np.arange(len(counts))
        where = pa.array(top)
        self.context.load.add_keys(key_values([c.take(where) for c in columns]), counts[top].tolist())
