"""Work that runs in a thread of its own while a benchmark measures."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self


class Background(ABC):
    """A context that calls `_step` every `every` seconds, in a thread with the name `name`."""

    def __init__(self, every: float, name: str) -> None:
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"evenflow-bench-{name}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the thread; returns when the last step is over."""
        self._over.set()
        self._thread.join()

    @abstractmethod
    def _step(self) -> None:
        """Do one step. The first comes `every` seconds after the context was entered."""

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self._step()
