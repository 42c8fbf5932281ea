"""Opening of the backend of one operator in one worker, by the job's settings."""

from __future__ import annotations

from .base import StateBackend
from .frozen_states import Pack
from .memory import MemoryBackend
from .settings import LMDB, MEMORY, StateSettings


def open_backend(settings: StateSettings, operator: str, index: int, key_groups: int, pack: Pack | None = None) -> StateBackend:
    """Open an empty backend for `operator` in worker `index`. Raises StateBackendError if there is no room, or no server."""
    if settings.backend == MEMORY:
        return MemoryBackend(key_groups, pack)
    if settings.backend == LMDB:
        from .lmdb import LmdbBackend

        return LmdbBackend(operator, settings.folder)
    from .remote import RemoteBackend  # the client library takes 0.2 s to import

    return RemoteBackend(settings, operator, index)
