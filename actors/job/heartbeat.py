"""The signs of life of a job's owner, for other starts of the program that find its claim.

Invariant: a run that was taken over learns it within `BEAT` seconds, unless its store doesn't answer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ...scheduler.record.restoring.run_claim import BEAT, LifeSign
from ...state.errors import EvenflowError
from ..task.saved_state import SupersededError
from .job_storage import JobStorage

PATIENCE = 2.0
"""Seconds for which the end of a job waits for a sign that is being written."""

_LOG = logging.getLogger(__name__)


class Heartbeat:
    """A thread that writes a sign every `BEAT` seconds until it is closed; none if nothing is claimed.

    `lost` is called once if the run was taken over.
    """

    def __init__(self, job: str, storage: JobStorage, lost: Callable[[EvenflowError], None]) -> None:
        self._job, self._storage, self._lost = job, storage, lost
        self._closed = threading.Event()
        self._silent = False
        self._thread = threading.Thread(target=self._run, name=f"{job}/heartbeat", daemon=True)
        if storage.claimed:
            self._thread.start()

    def close(self) -> None:
        """Write no more signs; wait for the current one, as long as the store answers."""
        self._closed.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        count = 0
        while not self._closed.wait(BEAT):
            count += 1
            try:
                self._storage.beat(LifeSign(count, time.time()))
                self._silent = False
            except SupersededError as error:
                self._lost(error)
                return
            except OSError as error:
                if not self._silent:
                    _LOG.warning("job `%s`: its sign of life could not be written: %s", self._job, error)
                self._silent = True
