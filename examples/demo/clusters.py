"""Spark and Ray on this machine, started at the same time because each takes several seconds, and stopped at the end."""

from __future__ import annotations

import logging
import os
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark import SparkContext
from pyspark.sql import SparkSession

from .report import CONSOLE

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# Spark ignores a configuration without an appender, and its gateway has its own level.
QUIET = """
status = off
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
"""


class Clusters:
    """A context: `start` returns the Spark session once both run; both are stopped at the end. `folder`: for their files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = ExitStack()

    def __enter__(self) -> Self:
        return self

    def start(self) -> SparkSession:
        with CONSOLE.status("Starting Spark and Ray, which takes a while ..."), ThreadPoolExecutor() as threads:
            spark = threads.submit(_start_spark, self._folder)
            self._started.callback(_stop_spark, spark)
            self._started.callback(_stop_ray)
            _start_ray(self._folder)
            return spark.result()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with CONSOLE.status("Stopping Spark and Ray ..."):
            self._started.close()


def _start_spark(folder: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    log4j = folder / "log4j2.properties"
    log4j.write_text(QUIET)
    settings = {**SETTINGS, "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j}", "spark.local.dir": str(folder)}
    builder = SparkSession.builder.master("local[2]").appName("delays")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _start_ray(folder: Path) -> None:
    """Start Ray in the main thread: its processes end with the thread that started them."""
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    ray.init("local", num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, _temp_dir=str(folder / "ray"))


def _stop_spark(started: Future[SparkSession]) -> None:
    if started.exception() is None:
        started.result().stop()
        gateway = SparkContext._gateway  # noqa: SLF001 -- Spark would keep its JVM until the end of Python, after the folder is gone
        if gateway is not None:
            gateway.shutdown()


def _stop_ray() -> None:
    import ray

    ray.shutdown()
