"""One Ray cluster for all tests of this folder, in its own temporary folder; no job may outlive its test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray
from patience import patience
from ray_settings import RAY_SETTINGS, start_ray
from watching import actors, end, printed_by, processes_of, socket_folders, until

import evenflow.actors.cluster as calls
from evenflow.engine.time.duration import seconds
from evenflow.scheduler.configs.worker import WorkerConfig


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Provide the temporary folder of every process of these tests. Its path is short, because it contains sockets."""
    path = Path(tempfile.mkdtemp(prefix="ef-", dir="/tmp"))
    os.environ["TMPDIR"], tempfile.tempdir = str(path), None
    yield path
    del os.environ["TMPDIR"]
    tempfile.tempdir = None
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def cluster(folder: Path) -> Iterator[str]:
    """Start a cluster and return its address."""
    os.environ.update(RAY_SETTINGS)
    context = start_ray(namespace="other")
    yield context.address_info["gcs_address"]
    ray.shutdown()
    until(lambda: not processes_of(folder), f"no process is left: {processes_of(folder)}")


@pytest.fixture(scope="session", autouse=True)
def bounds_of_jobs_on_ray_grow_too() -> Iterator[None]:
    """Scale how long a job waits for its processes' heartbeats and a driver for its coordinator, unless a test sets that."""
    decided = WorkerConfig.on_cluster  # the driver sends each job's settings through it
    usual = WorkerConfig().heartbeat_timeout

    def grown(self: WorkerConfig, *, named: bool) -> WorkerConfig:
        found = decided(self, named=named)
        return replace(found, heartbeat_timeout=patience(seconds(usual))) if found.heartbeat_timeout == usual else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkerConfig, "on_cluster", grown)
        patch.setattr(calls, "CALL_TIMEOUT", patience(calls.CALL_TIMEOUT))
        yield


@pytest.fixture(autouse=True)
def nothing_outlives_its_test(cluster: str, folder: Path) -> Iterator[None]:
    """Assert that no actor or folder remains, except of a job that a wider fixture runs."""
    before, folders = set(actors()), set(socket_folders(folder))
    yield
    try:
        until(lambda: before.issuperset(actors()), f"no actor but {before} is left")
    except AssertionError:
        end(set(actors()) - before)  # the next tests need the cluster for themselves
        raise
    assert folders.issuperset(socket_folders(folder))


@pytest.fixture(scope="session")
def seen_on_several_nodes(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the output of `several_nodes.py`.

    It is a separate program because a process is connected to one cluster only, and that of the other tests has a single node.
    """
    return printed_by("several_nodes.py", tmp_path_factory.mktemp("several"))
