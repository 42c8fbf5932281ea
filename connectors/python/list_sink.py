"""The sink into a list on the driver, which grows as checkpoints complete.

>>> import pyarrow as pa
>>> from evenflow.engine.batch import Batch
>>> rows = []
>>> sink = to_list(rows)
>>> sink.start()
>>> writer = sink.writer(0, 1)
>>> writer.write(Batch(pa.record_batch({"n": [1, 2]})))
>>> for payload in sink.commit(1, writer.prepare(1)):
...     sink.deliver(payload)
>>> rows
[{'n': 1}, {'n': 2}]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ...engine.batch import Batch, NoPythonValueError
from ...engine.errors import ConnectorError, FlowError, RecordError
from ...engine.sink import Sink, SinkWriter


def to_list(target: list[dict[str, Any]], *, name: str = "to_list") -> ListSink:
    """Append the rows, as dicts, to the list `target` on the driver, exactly once, whenever a checkpoint completes and at the
    end.

    Rows of one worker keep their order. All rows since the last checkpoint are in memory: use it for tests and small results. The
    list belongs to this process: a program that continues its run in another process gets the rows of the checkpoint from which
    it continues and of all later ones.
    """
    if not isinstance(target, list):
        raise FlowError(f"operator `{name}`: the target is a {type(target).__name__}; give the list to append to")
    return ListSink(target, name)


@dataclass(slots=True)
class _Delivered:
    """The rows that a run has delivered in this process. `target`: the id of its list, `length`: the length of the list after the
    last delivery.

    `newest`: the newest checkpoint; `begins`: the delivered checkpoints, and the length of the list before each.
    """

    run: str = ""
    target: int = 0
    length: int = 0
    newest: int = -1
    begins: list[tuple[int, int]] = field(default_factory=list)


_DELIVERED: dict[tuple[str, str], _Delivered] = {}
"""Deliveries by checkpoint folder and operator: a program that continues its run into the same list gets no row twice."""


class ListSink(Sink):
    """A sink into a list that stays on the driver; workers get a copy of the sink without it."""

    guarantee = "exactly once (rows are delivered when their checkpoint completes)"
    driver_part = "the list"

    def __init__(self, target: list[dict[str, Any]], name: str) -> None:
        self.name = name
        self._target: list[dict[str, Any]] | None = target
        self._delivered, self._place, self._run = _Delivered(), ("", ""), ("", False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_target": None}

    def given_settings(self) -> dict[str, Any]:
        return {"name": self.name}

    def of_job(self, job: str, operator: str, checkpoints: str | None) -> None:
        self._place = (checkpoints or "", operator)

    def of_run(self, run: str, *, continues: bool) -> None:
        self._run = (run, continues)

    def start(self) -> None:
        (run, continues), known, target = self._run, _DELIVERED.get(self._place), self._target
        same = known is not None and known.run == run and known.target == id(target) and target is not None and known.length == len(target)
        self._delivered = known if known is not None and continues and same else _Delivered(run, id(target))
        if self._place[0]:
            _DELIVERED[self._place] = self._delivered

    def writer(self, index: int, parallelism: int) -> ListWriter:
        return ListWriter()

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        return [[checkpoint, list(committables)]] if committables else []

    @property
    def retractable(self) -> bool:
        return True

    def retract(self, after: int) -> list[Any]:
        return [[after, None]]

    def deliver(self, payload: Any) -> None:
        """Extend the list, or cut off the rows since a checkpoint. A commit repeated after a crash delivers nothing."""
        if self._target is None:
            raise ConnectorError(f"operator `{self.name}`: rows arrived at a copy of the sink without the list")
        checkpoint, streams = payload
        if streams is None:
            self._cut_off(checkpoint)
            return
        if checkpoint <= self._delivered.newest:
            return
        self._delivered.begins.append((checkpoint, len(self._target)))
        for stream in streams:
            for rows in pa.ipc.open_stream(stream):
                try:
                    self._target += Batch(rows).to_rows()
                except NoPythonValueError as error:
                    raise RecordError(self.name, str(error)) from error
        self._delivered.newest, self._delivered.length = checkpoint, len(self._target)

    def _cut_off(self, after: int) -> None:
        """Remove the rows of checkpoints later than `after`: they will be delivered again."""
        assert self._target is not None
        delivered = self._delivered
        while delivered.begins and delivered.begins[-1][0] > after:
            del self._target[delivered.begins.pop()[1] :]
        delivered.newest, delivered.length = min(delivered.newest, after), len(self._target)


class ListWriter(SinkWriter):
    """A writer that holds rows until the checkpoint; a committable is an Arrow IPC stream of batches of one schema."""

    def __init__(self) -> None:
        self._held: list[pa.RecordBatch] = []

    def write(self, batch: Batch) -> None:
        if batch.num_rows:
            self._held.append(batch.rows)

    def prepare(self, checkpoint: int) -> list[Any]:
        runs: list[list[pa.RecordBatch]] = []
        for rows in self._held:
            if runs and runs[-1][0].schema.equals(rows.schema):
                runs[-1].append(rows)
            else:
                runs.append([rows])
        self._held = []
        return [_stream(run) for run in runs]


def _stream(batches: list[pa.RecordBatch]) -> bytes:
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, batches[0].schema) as stream:
        for rows in batches:
            stream.write_batch(rows)
    return bytes(buffer.getvalue())
