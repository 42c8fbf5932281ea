"""A program for a test: starts a query into an exchange folder, and dies with its Java machine in the middle, after four batches."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from driving import start_spark, wait_until

from evenflow.connectors.exchange.exchange_folder import ExchangeFolder
from evenflow.connectors.spark.source import from_spark

work, data, exchange = (Path(argument) for argument in sys.argv[1:])
spark = start_spark(work)
from_spark(spark.readStream.schema("n long, ts timestamp").option("maxFilesPerTrigger", 1).parquet(str(data)), path=exchange).start()
wait_until(lambda: (ExchangeFolder(exchange).latest() or 0) >= 3, "the fourth micro-batch")
jvm = spark._jvm
assert jvm is not None
os.kill(jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
os._exit(0)
