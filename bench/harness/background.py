"""Work that runs in a thread of its own while a benchmark measures."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Background(ABC):
    """A context that calls `_step` every `every` seconds, in a thread with the name `name`. An error of a step is raised at its end."""

    def __init__(self, every: float, name: str) -> None:
        self._every = every
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"evenflow-bench-{name}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.stop()
        except Exception:
            if error is None:
                raise

    def stop(self) -> None:
        """End the thread; returns when the last step is over. Raises the error of a step."""
        self._over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    @abstractmethod
    def _step(self) -> None:
        """Do one step. The first comes `every` seconds after the context was entered."""

    def _run(self) -> None:
        try:
            while not self._over.wait(self._every):
                self._step()
        except Exception as error:  # noqa: BLE001 -- a thread that ends without a word would leave the measurement without its load
            self._failure = error
