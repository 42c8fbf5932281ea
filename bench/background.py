"""What a benchmark does beside what it measures, in a thread of its own."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self


class Background(ABC):
    """A context in which `_step` is called every `every` seconds. `name` is that of the thread."""

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
        """Return when the last step is done; none comes after it."""
        self._over.set()
        self._thread.join()

    @abstractmethod
    def _step(self) -> None:
        """Called in the thread, the first time `every` seconds after the context was entered."""

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self._step()
