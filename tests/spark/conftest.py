from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from driving import start_spark
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as environment:
        warnings.simplefilter("ignore")  # pyspark's own, about versions of its dependencies
        environment.delenv("TMPDIR", raising=False)  # Spark's JVM lives as long as this process, longer than the folder of the tests on Ray
        session = start_spark(folder)
    yield session
    session.stop()
