"""A run's memory in the cluster's own store, which exists as long as Ray can restart a coordinator.

It is Ray's only store that outlives an actor; Ray has no public call for it. A record is some 60 bytes, written once per
checkpoint.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import msgpack
from ray.experimental import internal_kv

from .run_memory import RunMemory, RunRecord

STORE = "evenflow/runs"


class ClusterMemory(RunMemory):
    """The memory of run `run`. Every method may raise Ray's errors if its head node doesn't answer."""

    def __init__(self, run: str) -> None:
        super().__init__()
        self._run = run
        self.record = self._kept()

    def keep(self, record: RunRecord) -> None:
        if record != self.record:
            kept = self._kept()  # a later coordinator's record, if this one was considered lost: its commits stay recorded
            latest = replace(record, term=max(record.term, kept.term), committed=max(record.committed, kept.committed))
            internal_kv._internal_kv_put(self._run, msgpack.packb(asdict(latest)), namespace=STORE)  # noqa: SLF001 -- see above
        super().keep(record)

    def _kept(self) -> RunRecord:
        kept = internal_kv._internal_kv_get(self._run, namespace=STORE)  # noqa: SLF001
        return RunRecord() if kept is None else RunRecord(**msgpack.unpackb(kept))

    def forget(self) -> None:
        """Delete the record: the run is over, and its coordinator will not be restarted."""
        internal_kv._internal_kv_del(self._run, namespace=STORE)  # noqa: SLF001
