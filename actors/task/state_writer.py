"""Writing of a worker's part of a checkpoint in a separate thread, so that no batch waits for a disk.

Chunks arrive from the worker's thread while the stream continues; once the last has been written, the report that the task is
prepared, with the files, can be taken. A failure to write is a report too: the job decides what to do.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.errors import JobTimeoutError, shown
from ...engine.protocol.effects import Prepared
from ...engine.protocol.ids import CheckpointNumber
from ...engine.snapshots.chain import gathered
from ...scheduler.protocol.messages import CheckpointFailed
from ...state.store import CheckpointStore

MOST_WAITING = 16 << 20
"""The bytes waiting to be written at which the task makes no more chunks, which may be small."""

FLUSH_TIMEOUT = 300.0


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of the state for the file of `checkpoint`, of `size` bytes."""

    checkpoint: CheckpointNumber
    rows: pa.RecordBatch
    size: int


class StateWriter:
    """A writer of state files. `name`: the prefix of file names. Public methods are for the worker's thread."""

    def __init__(self, store: CheckpointStore, name: str) -> None:
        self._store, self._name = store, name
        self._queue: queue.SimpleQueue[_Piece | Prepared | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Prepared | CheckpointFailed] = queue.SimpleQueue()
        self._waiting = 0
        self._given = self._taken = 0
        """Bytes of chunks: those that came are counted by the worker's thread, those that left the queue by the other."""
        self._thread = threading.Thread(target=self._run, name=f"{name}/checkpoint", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """True if enough bytes wait to be written."""
        return self._given - self._taken >= MOST_WAITING

    def write(self, checkpoint: CheckpointNumber, chunk: Batch) -> None:
        """Append a chunk to the file of `checkpoint`."""
        size = chunk.rows.nbytes
        self._given += size
        self._queue.put(_Piece(checkpoint, chunk.rows, size))

    def finish(self, prepared: Prepared) -> None:
        """End a checkpoint's chunks; `take` returns `prepared` with its files, or a failure."""
        self._waiting += 1
        self._queue.put(prepared)

    def take(self) -> list[Prepared | CheckpointFailed]:
        """Return checkpoints that were written completely, or failed, since the last call."""
        found = []
        while self._waiting and not self._done.empty():
            found.append(self._done.get())
            self._waiting -= 1
        return found

    def flush(self) -> list[Prepared | CheckpointFailed]:
        """Wait for pending writes and return them as `take` does. Raises JobTimeoutError if that takes too long."""
        found = []
        while self._waiting:
            try:
                found.append(self._done.get(timeout=FLUSH_TIMEOUT))
            except queue.Empty as error:
                raise JobTimeoutError(
                    f"worker {self._name}: its part of a checkpoint was not written within {FLUSH_TIMEOUT:g} s"
                ) from error
            self._waiting -= 1
        return found

    def close(self) -> None:
        """End the thread after the current file; unfinished checkpoints are abandoned."""
        while not self._queue.empty():
            self._queue.get()
        self._queue.put(None)
        self._thread.join(FLUSH_TIMEOUT)

    def _run(self) -> None:
        while (item := self._take()) is not None:
            report = item if isinstance(item, Prepared) else self._write_file(item)  # without state there is no file
            if report is None:
                return
            self._done.put(report)

    def _take(self) -> _Piece | Prepared | None:
        item = self._queue.get()
        if isinstance(item, _Piece):
            self._taken += item.size
        return item

    def _write_file(self, first: _Piece) -> Prepared | CheckpointFailed | None:
        """Write pieces until the final report, or skip those that can't be written; return None if closed before."""
        pieces = _Pieces(first, self._take)
        try:
            with self._store.writing(first.checkpoint, self._name) as file:
                for chunk in gathered(pieces):
                    file.write(chunk)
        except Exception as error:  # noqa: BLE001 -- a file system's library may raise anything, and the job must hear of it
            for _ in pieces:  # the failed write may be the end of the file, after the last piece
                pass
            return None if pieces.end is None else CheckpointFailed(pieces.end.checkpoint, shown(error), pieces.end.committables)
        return None if pieces.end is None else replace(pieces.end, files=(file.finish(),))


class _Pieces:
    """The rows of `first` and of the pieces after it. `end`: what came after the last one."""

    def __init__(self, first: _Piece, take: Callable[[], _Piece | Prepared | None]) -> None:
        self._first: _Piece | None = first
        self._take = take
        self._over = False
        self.end: Prepared | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._over:
            raise StopIteration
        item, self._first = self._first or self._take(), None
        if isinstance(item, _Piece):
            return item.rows
        self._over, self.end = True, item
        raise StopIteration
