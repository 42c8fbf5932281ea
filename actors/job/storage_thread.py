"""The thread that writes a job's manifests and lets its sinks commit, one after the other, while the job continues."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from ...engine.errors import JobFailedError, shown
from ...scheduler.protocol.effects import StorageEffect
from ...scheduler.protocol.storage_answers import StorageAnswer, StorageFailed
from ...state.errors import EvenflowError
from ...state.redacted_output import cleared
from .job_storage import JobStorage


class StorageThread:
    """The storage thread of a job. `answer` is called in this thread, and for the copy of a savepoint in another."""

    def __init__(self, job: str, storage: JobStorage, answer: Callable[[StorageAnswer], None]) -> None:
        self._job, self._storage, self._answer = job, storage, answer
        self._queue: SimpleQueue[StorageEffect | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"{job}/storage", daemon=True)
        self._thread.start()

    def put(self, effect: StorageEffect) -> None:
        """Carry out an effect after the earlier ones."""
        self._queue.put(effect)

    def close(self, patience: float) -> bool:
        """End once everything is carried out; return True if that was within `patience` seconds.

        Unfinished work continues until the process ends.
        """
        self._queue.put(None)
        self._thread.join(timeout=patience)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (effect := self._queue.get()) is not None:
            answer = self._perform(effect)
            if answer is not None:
                self._answer(answer)

    def _perform(self, effect: StorageEffect) -> StorageAnswer | None:
        try:
            return self._storage.perform(effect, self._answer)
        except BaseException as raised:  # noqa: BLE001 -- without an answer the job would wait for ever
            error = cleared(raised)
            why = f"job `{self._job}`: {type(effect).__name__} failed: {shown(error)}"
            return StorageFailed(error if isinstance(error, EvenflowError) else JobFailedError(why))
