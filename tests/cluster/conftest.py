"""One Ray cluster for all tests of this folder, in a temporary folder of its own; nothing of a job may outlive its test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray_settings import RAY_SETTINGS, start_ray
from watching import actors, end, printed_by, processes_of, socket_folders, until


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """The temporary folder of every process of these tests. Its path is short: sockets lie in it."""
    path = Path(tempfile.mkdtemp(prefix="ef-", dir="/tmp"))
    os.environ["TMPDIR"], tempfile.tempdir = str(path), None
    yield path
    del os.environ["TMPDIR"]
    tempfile.tempdir = None
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def cluster(folder: Path) -> Iterator[str]:
    """The address of a cluster."""
    os.environ.update(RAY_SETTINGS)
    context = start_ray(namespace="other")
    yield context.address_info["gcs_address"]
    ray.shutdown()
    until(lambda: not processes_of(folder), f"no process is left: {processes_of(folder)}")


@pytest.fixture(autouse=True)
def nothing_outlives_its_test(cluster: str, folder: Path) -> Iterator[None]:
    """A job that a wider fixture runs may stay."""
    before, folders = set(actors()), set(socket_folders(folder))
    yield
    try:
        until(lambda: before.issuperset(actors()), f"no actor but {before} is left")
    except AssertionError:
        end(set(actors()) - before)  # the next tests shall have the cluster to themselves
        raise
    assert folders.issuperset(socket_folders(folder))


@pytest.fixture(scope="session")
def seen_on_several_nodes(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `several_nodes.py` prints: a process is connected to one cluster only, and that of the other tests has a single node."""
    return printed_by("several_nodes.py", tmp_path_factory.mktemp("several"))
