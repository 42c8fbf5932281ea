"""Moves of keyed state between the demo's workers every second, by one strategy after the other; the results must not change."""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

import evenflow as ef

STRATEGIES = ("batched", "lazy", "sudden", "fluid", "pause")
GROUPS = 1024


class Moves:
    """A context during which keys move; afterwards `migrations` is the number of migrations that moved keys."""

    def __init__(self, job: ef.Job, operator: str, every: float = 1.0) -> None:
        self._job, self._operator, self._every = job, operator, every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._move, name="moves", daemon=True)
        self.migrations = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _move(self) -> None:
        for number in count():
            if self._ended.wait(self._every):
                return
            groups, strategy = range(number % 3, GROUPS, 3), STRATEGIES[number % len(STRATEGIES)]
            with suppress(ef.JobError):  # the stream may end, or the worker leave, at any time
                report = self._job.migrate(self._operator, groups=groups, to=number % 2, strategy=strategy, timeout="10s")
                self.migrations += report.keys_moved > 0
