"""Where keyed state lies."""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.errors import FlowError
from ...state.backends.settings import MEMORY, StateSettings


@dataclass(frozen=True, slots=True)
class StateConfig:
    """Where the state of all keyed operators lies.

    `backend`: "memory", "lmdb" (files below `dir`, None for the system's temporary folder: state may be larger than memory), or a server,
    "redis://127.0.0.1:6379/0".

    >>> StateConfig("lmdb", dir="/fast").backend
    'lmdb'
    """

    backend: str = MEMORY
    dir: str | None = None

    def __post_init__(self) -> None:
        try:
            self.settings().check()
        except ValueError as error:
            raise FlowError(f"StateConfig: {error}") from error

    def settings(self) -> StateSettings:
        """What the backends need of it."""
        return StateSettings(self.backend, self.dir)
