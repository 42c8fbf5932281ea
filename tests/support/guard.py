"""Guards of unit tests, which run without waiting and without a cluster: sleeping, Ray and Spark fail them.

Ray and Spark are caught where they start their processes, so that neither has to be imported for it.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiers import TESTS

GUARDED = ("project", "simulation", "unit")
"""The folders of tests that it guards."""

CLUSTER_PROGRAMS = {"raylet": "Ray", "gcs_server": "Ray", "spark-submit": "Spark", "spark-submit.cmd": "Spark", "java": "Spark"}


class ClusterGuard:
    """Listens to Python's audit events. An audit hook can't be taken out again, so it is switched on for a test and off after it."""

    def __init__(self) -> None:
        self.active = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.active and event == "subprocess.Popen" and (system := cluster_of(args[0], args[1])):
            pytest.fail(f"a unit test started {system}: test the decision without it, or move the test to tests/cluster or tests/spark")


def cluster_of(executable: Any, command: Any) -> str | None:
    """Return Ray or Spark if a process with this command line would be a part of one."""
    words = [command] if isinstance(command, (str, bytes, os.PathLike)) else list(command)
    names = {Path(os.fsdecode(word)).name for word in (executable, *words[:1]) if word is not None}
    return next((CLUSTER_PROGRAMS[name] for name in sorted(names) if name in CLUSTER_PROGRAMS), None)


SLEEP = time.sleep


def refuse_to_sleep(seconds: float) -> None:
    pytest.fail(
        f"a unit test slept for {seconds} s: pass time in as a value, or wait for an event with a bound; "
        "the fixture `waiting_for_jobs` lets a job's handle poll"
    )


def pytest_collection_finish() -> None:
    """Freeze imported and collected objects, so that the garbage collector skips them."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Unfreeze, since extension modules check for leftovers when Python ends."""
    gc.unfreeze()


GUARD = ClusterGuard()
sys.addaudithook(GUARD)


@pytest.fixture(autouse=True)
def no_waiting_and_no_cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not any(request.path.is_relative_to(TESTS / folder) for folder in GUARDED):
        yield
        return
    monkeypatch.setattr(time, "sleep", refuse_to_sleep)
    GUARD.active = True
    yield
    GUARD.active = False


@pytest.fixture
def waiting_for_jobs(no_waiting_and_no_cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the handle of a job of this process sleep between two polls, and `subprocess` while it waits for a process."""
    monkeypatch.setattr(time, "sleep", SLEEP)


@pytest.fixture(scope="session")
def state_server() -> Iterator[str]:
    """Yield the address of a Valkey server that all tests share: each uses a name of its own for its state."""
    from state_server import valkey_server

    with valkey_server() as address:
        yield address
