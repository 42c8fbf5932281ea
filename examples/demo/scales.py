"""Changes of the number of workers of the demo's operators while the stream runs; the results must not change."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import evenflow as ef

WORKERS = (4, 2, 3)
RETRY_SECONDS = 0.2


class Scales:
    """A context during which operators scale. `wait` waits for the last scaling; afterwards `scalings` is the number done."""

    def __init__(self, job: ef.Job, *operators: str) -> None:
        self._job = job
        self._steps = [(operator, workers) for workers in WORKERS for operator in operators]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._scale, name="scales", daemon=True)
        self.scalings = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def wait(self) -> None:
        """Return when all are done, or the job has ended."""
        while self._thread.is_alive() and not self._job.status().state.final:
            time.sleep(RETRY_SECONDS)

    def _scale(self) -> None:
        for operator, workers in self._steps:
            while not self._scaled(operator, workers):
                if self._ended.wait(RETRY_SECONDS) or self._job.status().state.final:
                    return

    def _scaled(self, operator: str, workers: int) -> bool:
        try:
            self._job.scale(operator, workers, timeout="30s")
        except ef.JobError:  # keys are moving, the job has yet to start, or has ended
            return False
        self.scalings += 1
        return True
