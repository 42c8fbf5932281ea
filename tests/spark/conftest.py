from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray
from driving import QUICK_START, start_spark
from java_classes import archive_option, make_archive
from pyspark.sql import SparkSession
from ray_settings import RAY_SETTINGS, start_ray

FEW = 5
"""The number of tests for which an archive of Java's classes isn't worth the time that it takes to create."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Create the archive before the first test, so that no test takes its time."""
    of_spark = [item for item in session.items if item.path.is_relative_to(Path(__file__).parent)]
    if len(of_spark) > FEW and not session.config.option.collectonly:
        make_archive()


@pytest.fixture(scope="session", autouse=True)
def java_and_ray_start_quickly() -> Iterator[None]:
    """Set up a quick start, also for tests that start a process with its own Spark or Ray cluster."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"JAVA_TOOL_OPTIONS": f"{QUICK_START} {archive_option()}", **RAY_SETTINGS}.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as environment:
        warnings.simplefilter("ignore")  # pyspark's own, about versions of its dependencies
        environment.delenv("TMPDIR", raising=False)  # Spark's JVM lives as long as this process, longer than the folder of the tests on Ray
        session = start_spark(folder)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """Start Ray, unless other tests of this process have started it already."""
    if ray.is_initialized():
        yield
        return
    start_ray()
    yield
    ray.shutdown()
