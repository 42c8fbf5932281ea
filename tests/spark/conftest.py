from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from driving import start_spark
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own, about versions of its dependencies
        session = start_spark(folder)
    yield session
    session.stop()
