"""What operators with keyed state share: their keys, noting where their load comes from, and giving state away and taking it.

State travels as batches with the key columns in front, so that it crosses a channel like any data and a snapshot could hold it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..changes import Changes
from ..errors import RecordError
from ..keys import encode_keys, key_column, key_groups, key_values
from ..routing import Move
from .base import Operator

HOTTEST = 32
"""Keys of a batch, the hottest, that are counted by name."""
SAMPLE = 1024


class Departing(ABC):
    """The state of the keys that leave with a move. What was taken is gone from the operator."""

    @abstractmethod
    def some(self, keys: int) -> Batch | None:
        """The state of about `keys` keys that are still here; None when nothing is left."""

    @abstractmethod
    def of(self, columns: Sequence[pa.Array]) -> Batch | None:
        """The state of those of the keys (key columns) that are still here; None if none is."""


class KeyedOperator(Operator):
    """Its input is partitioned by `keys`, so that every record of a key comes to the same worker."""

    keys: tuple[str, ...]

    needs_state = True
    """Whether a record can only be processed where its key's state is; if not, state that comes later is merged."""

    @abstractmethod
    def depart(self, move: Move) -> Departing:
        """Let go of the state of the keys that `move` selects. No record of them comes any more."""

    @abstractmethod
    def install(self, state: Batch) -> None:
        """Take state that another instance's `Departing` gave, or a chunk of a snapshot."""

    def restore(self, state: Batch) -> None:
        """`install` a chunk that came from a checkpoint or a savepoint. Raises RecordError if it is not of an operator like this one."""
        try:
            self.check_restored(state.rows.schema)
            self.install(state)
        except (RecordError, MemoryError):
            raise
        except Exception as error:
            problem = f"the checkpoint's state under this name is not of an operator like this one ({type(error).__name__}: {error})"
            raise RecordError(self.context.name, f"{problem}: name it differently, and say allow_lost_state=True") from error

    def check_restored(self, schema: pa.Schema) -> None:
        """Raises TypeError if a chunk of this schema could be installed, but is state of an operator of another kind."""

    @abstractmethod
    def snapshot(self) -> Iterator[Batch]:
        """All state as it is now, in chunks that `install` takes; what comes later doesn't show in it.

        The call copies what it must; the chunks are made one by one, between later batches. No state departs or comes meanwhile.
        """

    @abstractmethod
    def changes(self) -> Changes | None:
        """What has changed since the last call, or None if that is not known; from now on it is noted."""

    @abstractmethod
    def delta(self, changes: Changes) -> Iterator[Batch]:
        """As `snapshot`, of what is among the changes, in chunks that `chain.resolved` puts in the place of what was."""

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

    def state_bytes(self) -> int:
        """Estimate of the bytes of its keyed state."""
        return 0

    def _note(self, columns: Sequence[pa.Array], counts: npt.NDArray[np.int64]) -> None:
        self.context.load.add(key_groups(list(columns), self.context.key_groups, self.context.name), counts)
        self._note_hottest(columns, counts)

    def _note_hottest(self, columns: Sequence[pa.Array], counts: npt.NDArray[np.int64]) -> None:
        top = np.argpartition(counts, -HOTTEST)[-HOTTEST:] if len(counts) > HOTTEST else np.arange(len(counts))
        where = pa.array(top)
        self.context.load.add_keys(key_values([c.take(where) for c in columns]), counts[top].tolist())
