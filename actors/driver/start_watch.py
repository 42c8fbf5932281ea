"""Messages about a slow start: what it waits for, on a terminal's stderr, elsewhere as a line of the log."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Self

_LOG = logging.getLogger(__name__)

SILENT = 1.0
"""Seconds that a start may take without a message, and between two checks of what it waits for."""


class StartWatch:
    """A context in which a thread calls `waits_for` every `every` seconds, by default `SILENT`, and prints changes.

    The context ends when the thread has, so that no call to Ray is in progress when this process ends: `waits_for` has a second.
    """

    def __init__(self, job: str, waits_for: Callable[[], str], every: float | None = None) -> None:
        self._job, self._waits_for, self._every = job, waits_for, SILENT if every is None else every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"evenflow-start-{job}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        said = ""
        while not self._over.wait(self._every):
            news = self._waits_for()
            if news != said and not self._over.is_set():
                _say(f"job `{self._job}` waits for {news}")
                said = news


def _say(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")
    else:
        _LOG.info(text)
