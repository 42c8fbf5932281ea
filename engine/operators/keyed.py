"""What operators with keyed state share: their key columns, and noting which keys their load comes from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..keys import encode_keys, key_column, key_groups, key_values
from .base import Operator

HOTTEST = 8
SAMPLE = 1024


class KeyedOperator(Operator):
    """Its input is partitioned by `keys`, so that every record of a key comes to the same worker."""

    keys: tuple[str, ...]

    def note_load(self, columns: Sequence[pa.Array], counts: npt.NDArray[np.int64]) -> None:
        """Note that `counts` records came for each row of the (distinct) keys in `columns`."""
        load = self.context.load
        if not load.enabled:
            return
        load.add(key_groups(list(columns), self.context.key_groups, self.context.name), counts)
        self._note_hottest(columns, counts)

    def note_rows(self, rows: pa.RecordBatch) -> None:
        """Note the load of a batch whose keys were not encoded; hot keys are estimated from its first rows."""
        load = self.context.load
        if not load.enabled:
            return
        name = self.context.name
        load.add(key_groups([key_column(rows, key, name) for key in self.keys], self.context.key_groups, name))
        sample = rows.slice(0, SAMPLE)
        keys = encode_keys(sample, self.keys, name)
        self._note_hottest(keys.columns, np.bincount(keys.codes, minlength=keys.count) * rows.num_rows // sample.num_rows)

    def state_bytes(self) -> int:
        """Estimate of the bytes of its keyed state."""
        return 0

    def _note_hottest(self, columns: Sequence[pa.Array], counts: npt.NDArray[np.int64]) -> None:
        top = np.argpartition(counts, -HOTTEST)[-HOTTEST:] if len(counts) > HOTTEST else np.arange(len(counts))
        where = pa.array(top)
        self.context.load.add_keys(key_values([c.take(where) for c in columns]), counts[top].tolist())
