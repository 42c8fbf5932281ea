"""A run's memory in the cluster's own store, which exists as long as Ray can restart a coordinator.

It is Ray's only store that outlives an actor; Ray has no public call for it. A record is some 60 bytes, written once per
checkpoint.
"""

from __future__ import annotations

import pickle
from dataclasses import asdict, replace
from typing import Any

import msgpack
from ray import cloudpickle
from ray.experimental import internal_kv

from ...scheduler.protocol.effects import RememberCode
from .run_memory import RunMemory, RunRecord

STORE = "evenflow/runs"

_dumps: Any = cloudpickle.dumps


class ClusterMemory(RunMemory):
    """The memory of run `run`. Every method may raise Ray's errors if its head node doesn't answer."""

    def __init__(self, run: str) -> None:
        super().__init__()
        self._run, self._code = run, f"{run}/code"
        self.record = replace(self._kept(), code=self._kept_code())

    def keep(self, record: RunRecord) -> None:
        if record == self.record and record.code is self.record.code:
            return
        kept = self._kept()  # a later coordinator's record, if this one was considered lost: its commits stay recorded
        if record != self.record:
            newest = record if record.term >= kept.term else kept
            latest = replace(newest, committed=max(record.committed, kept.committed))
            fields = msgpack.packb(asdict(replace(latest, code=None)))
            internal_kv._internal_kv_put(self._run, fields, namespace=STORE)  # noqa: SLF001 -- see above
        if record.code is not self.record.code and record.term >= kept.term:
            internal_kv._internal_kv_put(self._code, _dumps(record.code), namespace=STORE)  # noqa: SLF001
        super().keep(record)

    def _kept(self) -> RunRecord:
        kept = internal_kv._internal_kv_get(self._run, namespace=STORE)  # noqa: SLF001
        return RunRecord() if kept is None else RunRecord(**msgpack.unpackb(kept))

    def _kept_code(self) -> RememberCode | None:
        packed = internal_kv._internal_kv_get(self._code, namespace=STORE)  # noqa: SLF001
        # Ray keeps the arguments of an actor that it starts again, the first code among them, in the same place.
        return None if packed is None else pickle.loads(packed)  # type: ignore[no-any-return]  # noqa: S301

    def forget(self) -> None:
        """Delete the record: the run is over, and its coordinator will not be restarted."""
        internal_kv._internal_kv_del(self._run, namespace=STORE)  # noqa: SLF001
        internal_kv._internal_kv_del(self._code, namespace=STORE)  # noqa: SLF001
