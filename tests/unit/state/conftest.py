"""The three backends, each as a factory of empty ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest

from evenflow.state.backends.base import StateBackend
from evenflow.state.backends.lmdb import LmdbBackend
from evenflow.state.backends.memory import MemoryBackend
from evenflow.state.backends.remote import RemoteBackend
from evenflow.state.backends.settings import StateSettings

KEY_GROUPS = 16
NAMES = count()

BackendFactory = Callable[[], StateBackend]


def _memory() -> StateBackend:
    return MemoryBackend(KEY_GROUPS, pack=lambda keys, values: list(values))


def _lmdb() -> StateBackend:
    return LmdbBackend("step", folder=None, first_size=1 << 18)


@pytest.fixture(params=["memory", "lmdb", "remote"])
def make_backend(request: Any) -> Iterator[BackendFactory]:
    """Provide a factory, whose backends are closed at the end."""
    with ExitStack() as opened:

        def remote() -> StateBackend:
            settings = StateSettings(request.getfixturevalue("state_server"), job=f"tests-{next(NAMES)}")
            return RemoteBackend(settings, "step", 0)

        make = {"memory": _memory, "lmdb": _lmdb, "remote": remote}[request.param]

        def made() -> StateBackend:
            backend = make()
            opened.callback(backend.close)
            return backend

        yield made


@pytest.fixture
def backend(make_backend: BackendFactory) -> StateBackend:
    return make_backend()
