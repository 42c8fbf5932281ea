"""Spark on two cores of this machine."""

from __future__ import annotations

import os
import sys
from typing import Any

from ...engine.errors import ClusterError


def spark_session(name: str, **settings: str) -> Any:
    """Return a quiet Spark session on two cores, whose Python workers have this interpreter. Raises ClusterError without Java."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName(name)
    fixed = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    for key, value in {**fixed, "spark.sql.session.timeZone": "UTC", "spark.log.level": "ERROR", **settings}.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise ClusterError("Spark needs Java 17 or newer, in JAVA_HOME or on the PATH: `evenflow doctor` looks for it") from error
