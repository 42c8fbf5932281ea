"""The windows of many workers whose keys follow Zipf's law, with hot keys and a load for each key group that holds one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ...connectors.generated.generate import zipf_cdf
from ...engine.keys.encoding import key_hashes
from ...engine.protocol.ids import WorkerId
from ...engine.protocol.routing import RoutingTable
from ...scheduler.load.window import WorkerWindow
from ...state.hashing import group_of
from ..migration.loop import RECORDS_PER_WORKER, windows_of

KEYS, ZIPF, ROWS = 100_000, 1.0, 5_000
"""`ROWS`: of a source in a second."""


class Loads:
    """The loads of the seconds of a job, drawn at random. The same for every number of seconds and every run."""

    def __init__(self, key_groups: int) -> None:
        self.hashes = key_hashes([pa.array(np.arange(KEYS))], "wide")
        self.groups = len(np.unique(group_of(self.hashes, key_groups)))
        self._random = np.random.default_rng(0)
        shares = self._random.permutation(np.diff(zipf_cdf(KEYS, ZIPF), prepend=0.0))
        self._shares = shares / shares.sum()

    def windows(
        self, workers: tuple[WorkerId, ...], sources: tuple[WorkerId, ...], table: RoutingTable, second: float
    ) -> Iterator[WorkerWindow]:
        """Yield the windows of the second that begins at `second`, seconds since the epoch."""
        time = int(second * 1e6)
        for source in sources:
            yield WorkerWindow(source, second, 1.0, rows_in=ROWS, rows_out=ROWS, useful=0.3, wait_input=0.7, backlog=0, watermark=time)
        records = self._random.multinomial(RECORDS_PER_WORKER * len(workers), self._shares)
        owners = table.owners(self.hashes)
        yield from windows_of(workers, table, self.hashes, owners, records, second, watermark=time, latencies=(3.0, 5.0))
