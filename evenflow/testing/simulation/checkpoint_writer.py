"""A worker's part of checkpoints in a simulation: its chunks go to the simulated storage, which the seed may make full or slow.

Invariant: files are written in the order in which their checkpoints were finished, unless the storage is slow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.protocol.effects import Prepared
from ...scheduler.protocol.messages import CheckpointFailed
from ...state.files import StateFile
from .storage import MemoryStorage

BUSY = 0.7
"""The probability that a chunk keeps the writer busy, so that the task does something else before it makes the next."""


class SimulatedWriter:
    """A writer of checkpoints. `name` and `attempt` name its files. `random` decides how often it is busy; None: always."""

    def __init__(self, storage: MemoryStorage, name: str, attempt: int, random: Random | None) -> None:
        self._storage, self._name, self._attempt, self._random = storage, name, attempt, random
        self.busy = False
        self._chunks: list[Batch] = []
        self._unwritten: deque[tuple[Prepared, list[Batch]]] = deque()
        self._done: list[Prepared | CheckpointFailed] = []

    @property
    def waits(self) -> bool:
        """True if a checkpoint is finished and its state is not written yet."""
        return bool(self._unwritten)

    def write(self, checkpoint: int, chunk: Batch) -> None:
        self._chunks.append(chunk)
        self.busy = self._random is None or self._random.random() < BUSY

    def finish(self, prepared: Prepared) -> None:
        self._unwritten.append((prepared, self._chunks))
        self._chunks = []

    def write_oldest(self) -> None:
        """Write this worker's state for the oldest checkpoint; fails while the storage is full."""
        prepared, chunks = self._unwritten.popleft()
        number = prepared.checkpoint
        try:
            name = f"{self._name} at {number} in {self._attempt}"
            files = (self._storage.put(number, name, chunks),) if chunks else ()
            self._done.append(replace(prepared, files=files))
        except OSError as error:
            self._done.append(CheckpointFailed(number, str(error), prepared.committables))

    def take(self) -> list[Prepared | CheckpointFailed]:
        self.busy = False
        while self._unwritten and not self._storage.slow:
            self.write_oldest()
        done, self._done = self._done, []
        return done

    def flush(self) -> list[Prepared | CheckpointFailed]:
        while self._unwritten:
            self.write_oldest()
        return self.take()

    def close(self) -> None:
        self._unwritten.clear()


class SimulatedSavedState:
    """The files of checkpoints from which a worker restores its state."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage

    def chunks(self, checkpoint: int, entry: StateFile) -> Iterable[pa.RecordBatch]:
        return [batch.rows for batch in self._storage.chunks(entry)]
