"""Flight delays per destination and day: Spark reads and cleans the departures, evenflow aggregates them, Spark gets the results.

    make demo        or        .venv/bin/python examples/delays.py

The 336,776 departures from New York in 2013 arrive month by month, as a stream. In a second act (`demo/storm.py`) 50,000 arrive every
second, and a storm makes one destination hot: the job moves keys, gets a worker and new code while it runs. At the end of each act
every row of the result is compared with the same query in Spark; the process exits with 1 if one differs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import webbrowser
from contextlib import ExitStack
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from demo import storm, storm_view
from demo.changes import Changes, emitted
from demo.check import compare
from demo.clusters import Clusters
from demo.data import MONTHS, departures, split_by_month
from demo.live import LiveView
from demo.moves import Moves
from demo.picture import draw
from demo.report import CONSOLE, Report, show, show_comparison
from demo.scales import Scales
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- as in Spark's own documentation

import evenflow as ef
from evenflow.actors.cluster import address
from evenflow.page.page_process import PAGE


def delays(flights: DataFrame, output: Path, trigger: str = "availableNow") -> ef.Dataflow:
    """Build the dataflow: departures and their delays per destination and day."""
    flow = ef.Dataflow("delays")
    departures = flow.read(ef.from_spark(flights, event_time="ts", max_delay="1d", trigger=trigger))
    daily = (
        departures.filter(ef.col("dep_delay").is_not_null())  # a cancelled flight has none
        .key_by("dest")
        .window(ef.tumbling("1d"))
        .aggregate(departures=ef.count(), total=ef.sum("dep_delay"), mean=ef.mean("dep_delay"), worst=ef.max("dep_delay"))
    )
    daily.write(ef.to_spark(path=output))
    return flow


def delays_in_spark(flights: DataFrame) -> DataFrame:
    """Return the result of the same query by Spark in batch."""
    delay = F.col("dep_delay")
    return (
        flights.where(delay.isNotNull())
        .groupBy("dest", F.window("ts", "1 day").alias("w"))
        .agg(F.count("*").alias("departures"), F.sum(delay).alias("total"), F.mean(delay).alias("mean"), F.max(delay).alias("worst"))
        .select("dest", F.col("w.start").alias("window_start"), F.col("w.end").alias("window_end"), "departures", "total", "mean", "worst")
    )


# Without the combiner every departure travels to the worker of its destination, so that the hot destinations show in the load.
SETTINGS = ef.JobConfig(
    parallelism=2, combine=False, checkpoint=ef.CheckpointConfig(interval="1s"), metrics=ef.MetricsConfig(window="500ms")
)


def end_with_the_last_month(spark: SparkSession) -> None:
    """Stop the query, which ends the stream in order."""
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()


def start(flow: ef.Dataflow, config: ef.JobConfig, *, ui: bool) -> ef.Job:
    """Start a dataflow; `ui`: open its live page in a browser."""
    job = flow.run(config=config, ui=ui)
    if ui:
        webbrowser.open(PAGE.address(job.name, address()))
    return job


def first_act(spark: SparkSession, files: Path, output: Path, given: argparse.Namespace) -> bool:
    """Process all departures as fast as they can be read. Returns True if the results were right.

    `--moves`: state moves between the workers every second. `--scales`: source and aggregate begin with one worker each, and then
    get four, two and three; a month arrives every second until that is done.
    """
    begun = time.monotonic()
    table = output / "delays.parquet"
    shutil.rmtree(table, ignore_errors=True)
    flow = delays(departures(spark, files, streaming=True), table, "1s" if given.scales else "availableNow")
    job = start(flow, replace(SETTINGS, parallelism=1) if given.scales else SETTINGS, ui=given.ui)
    with ExitStack() as meanwhile:
        meanwhile.enter_context(LiveView(job))
        moving = meanwhile.enter_context(Moves(job, "aggregate")) if given.moves else None
        scaling = meanwhile.enter_context(Scales(job, "from_spark", "aggregate")) if given.scales else None
        if scaling is not None:
            scaling.wait()
            end_with_the_last_month(spark)
        job.wait()
    if moving is not None:
        CONSOLE.print(f"State moved between the workers {moving.migrations} times meanwhile.")
    if scaling is not None:
        CONSOLE.print(f"Operators got another number of workers {scaling.scalings} times meanwhile.")

    with CONSOLE.status("The same query in Spark, in batch ..."):
        result = spark.read.parquet(str(table)).toArrow()
        expected = delays_in_spark(departures(spark, files, streaming=False)).toArrow()
    comparison = compare(result, expected)

    report = Report.of(result, job.metrics(), job.load("aggregate"), job.status().running_seconds)
    draw(report, output / "delays.png")
    show(report, comparison, output, time.monotonic() - begun)
    return comparison.equal


def second_act(spark: SparkSession, files: Path, folder: Path, output: Path, given: argparse.Namespace) -> bool:
    """Replay departures at 50,000 a second, with a storm: keys move automatically, a worker joins, and new code comes.

    Returns True if the results were right, and both changes were made.
    """
    phases = tuple(phase.slower(given.slower) for phase in storm.PHASES)
    seconds = sum(phase.seconds for phase in phases)
    CONSOLE.print(
        f"\nSecond act: {phases[0].rate:,.0f} departures a second, for {seconds:.0f} s and until new code has all keys. "
        "A storm diverts two of five to Chicago."
    )
    table, replay = output / "storm.parquet", folder / "replay.parquet"
    shutil.rmtree(table, ignore_errors=True)
    storm.write_replay(departures(spark, files, streaming=False), replay, phases)
    job = start(storm.storm(replay, table, slower=given.slower), storm.SETTINGS, ui=given.ui)
    *_, join_at, upgrade_at, end_at = accumulate(phase.rows for phase in phases)
    new = storm.storm(replay, table, version=2, slower=given.slower)
    with Changes(job, "totals", new, join_at=join_at, upgrade_at=upgrade_at, end_at=end_at) as changes:
        seen = storm_view.follow(job)
        job.wait()
    if seen is not None:
        storm_view.show_seconds(seen, phases)
    for change in changes.made:
        CONSOLE.print(change)
    with CONSOLE.status("The same query in Spark, in batch ..."):
        expected = storm.storm_in_spark(spark, replay, table, emitted(job)).toArrow()
        comparison = compare(spark.read.parquet(str(table)).toArrow(), expected)
    show_comparison(comparison)
    return comparison.equal and changes.complete


def run(output: Path, given: argparse.Namespace) -> bool:
    """Run the acts of the demo. Returns True if all results were right."""
    # Under /tmp, even if TMPDIR differs: the path of Ray's Unix socket must be short.
    with (
        tempfile.TemporaryDirectory(prefix=f"delays-{os.getpid()}-", dir="/tmp", ignore_cleanup_errors=True) as folder,
        Clusters(Path(folder)) as clusters,
    ):
        files = split_by_month(Path(folder, "csv"), given.months)
        spark = clusters.start()
        right = [first_act(spark, files, output, given)] if given.act != 2 else []
        right += [second_act(spark, files, Path(folder), output, given)] if given.act != 1 else []
    return all(right)


def main() -> int:
    """Run the demo; return the exit code: 0 if all rows are right, 1 if one is not, 130 after Ctrl-C."""
    arguments = argparse.ArgumentParser(description="Flight delays: from Spark through evenflow and back")
    arguments.add_argument(
        "--months", type=int, default=MONTHS, choices=range(1, MONTHS + 1), help="of 2013, from January on (default: all)"
    )
    arguments.add_argument(
        "--output", type=Path, default=Path("build/demo"), help="folder for the results and the picture (default: %(default)s)"
    )
    arguments.add_argument("--moves", action="store_true", help="move state between the workers every second of the first act")
    arguments.add_argument("--scales", action="store_true", help="give the operators other numbers of workers in the first act")
    arguments.add_argument("--act", type=int, choices=(1, 2), help="only this act (default: both)")
    arguments.add_argument("--slower", type=float, default=1.0, help="the second act takes this many times as long, on a slow machine")
    arguments.add_argument("--ui", action="store_true", help="open the live web page of each act in a browser")
    given = arguments.parse_args()
    try:
        return 0 if run(given.output.resolve(), given) else 1
    except KeyboardInterrupt:
        CONSOLE.print("Stopped.")
        return 130


if __name__ == "__main__":
    sys.exit(main())
