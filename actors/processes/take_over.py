"""A coordinator's take-over from a lost one while the store of its checkpoints doesn't answer: it tries again, and reports why.

Ray restarts an actor whose process is lost, but not one whose `__init__` raises. So the process stays, and tries in another thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from ...engine.errors import JobBusyError
from ...engine.hopeless import hopeless
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.requests import Cancel, Fail, Request, ShowFigures, ShowStatus
from ...scheduler.protocol.status import JobStatus
from ...state.errors import StoreRefusedError

_LOG = logging.getLogger(__name__)

FIRST_DELAY, LONGEST_DELAY = 0.5, 15.0
"""Seconds between two tries."""

REFUSED_PATIENCE = 300.0
"""Seconds for which it tries while the store rejects it: rights and credentials are sometimes renewed too late."""


class TakeOver:
    """A take-over. `begin` takes over, or raises OSError if the store doesn't answer. `lose` is called with a final error.

    `delay`: seconds before the second try. `patience`: seconds for which it tries while the store rejects it.
    """

    def __init__(
        self,
        job: str,
        begin: Callable[[], None],
        lose: Callable[[Exception], None],
        *,
        delay: float = FIRST_DELAY,
        patience: float = REFUSED_PATIENCE,
    ) -> None:
        self._job, self._begin, self._lose, self._delay, self._patience = job, begin, lose, delay, patience
        self._waits_for = "the folder of its checkpoints"
        self._given_up, self._over = threading.Event(), threading.Event()

    def start(self) -> None:
        """Start to try."""
        threading.Thread(target=self._run, name=f"{self._job}/takeover", daemon=True).start()

    def wait(self, patience: float) -> None:
        """Return when it is over, or after `patience` seconds."""
        self._over.wait(patience)

    @property
    def given_up(self) -> bool:
        """True once it has stopped trying because the job was cancelled."""
        return self._given_up.is_set()

    @property
    def state(self) -> JobState:
        """The state of the job meanwhile."""
        return JobState.CANCELLED if self.given_up else JobState.RESTARTING

    def ask(self, request: Request[Any]) -> Any:
        """Cancel the job, or show its status and figures meanwhile. Raises JobBusyError for all other requests."""
        match request:
            case Cancel() | Fail():
                self.give_up()
                return None
            case ShowStatus():
                return JobStatus(self._job, self.state, None, (), 0, 0.0, problems=(f"waits for its store: {self._waits_for}",))
            case ShowFigures():
                return []
        raise JobBusyError(f"job `{self._job}` restarts, and waits for its store: {self._waits_for}")

    def give_up(self) -> None:
        """Stop trying."""
        self._given_up.set()
        self._over.set()

    def _run(self) -> None:
        try:
            self._try()
        finally:
            self._over.set()

    def _try(self) -> None:
        delay, began = self._delay, time.monotonic()
        while not self._given_up.is_set():
            try:
                self._begin()
            except OSError as error:
                refused = isinstance(error, StoreRefusedError) and time.monotonic() > began + self._patience
                if refused or hopeless(error) is not None:
                    self._lose(error)
                    return
                self._waits_for = str(error)
                _LOG.warning("job `%s`: its coordinator was lost, and the next one can't continue yet: %s", self._job, error)
                self._given_up.wait(delay)
                delay = min(2 * delay, LONGEST_DELAY)
            except Exception as error:  # noqa: BLE001 -- who follows the job must hear of it
                self._lose(error)
                return
            else:
                return
