"""Work outside a task's thread, in a thread for each piece of it: an operator has at most one in progress.

Invariant: the task never waits for it. Work in progress at the end of the task is abandoned: its thread ends with the process.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ...engine.protocol.effects import WorkOutcome


class BackgroundThreads:
    """The background work of one task, whose name is `name`. Used by one thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._done: deque[tuple[int, WorkOutcome]] = deque()
        self._closed = False

    def begin(self, position: int, run: Callable[[], Any]) -> None:
        threading.Thread(target=self._run, args=(position, run), name=f"{self._name} background", daemon=True).start()

    def take(self) -> Iterator[tuple[int, WorkOutcome]]:
        while self._done:
            yield self._done.popleft()

    def close(self) -> None:
        self._closed = True
        self._done.clear()

    def _run(self, position: int, run: Callable[[], Any]) -> None:
        try:
            outcome = WorkOutcome(run())
        except BaseException as error:  # noqa: BLE001 -- a user's function may raise anything
            outcome = WorkOutcome(error=error)
        if not self._closed:
            self._done.append((position, outcome))
