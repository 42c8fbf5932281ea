"""The second act: January is repeated in forty seconds. A storm diverts every third departure to Chicago, then come the holidays,
and each departure costs its worker two milliseconds. The engine alone places keys and workers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 -- as in Spark's own documentation

import evenflow as ef

COST = 0.002
"""Seconds that the function of each departure takes, as a call to a slow service does."""

HOT = "ORD"


@dataclass(frozen=True)
class Phase:
    """A phase of `rate` departures per second for `seconds`; with `storm`, every third goes to Chicago."""

    name: str
    rate: float
    seconds: float
    storm: bool

    @property
    def rows(self) -> int:
        return round(self.rate * self.seconds)

    def slower(self, factor: float) -> Phase:
        """Return the same departures, in `factor` times as many seconds."""
        return Phase(self.name, self.rate / factor, self.seconds * factor, self.storm)


PHASES = (Phase("calm", 300, 8, storm=False), Phase("storm", 600, 14, storm=True), Phase("rush", 800, 18, storm=True))

# Two workers are busy for 32, 64 and 86 % of their time in the three phases, if their load is even.
SETTINGS = ef.JobConfig(
    parallelism=2,
    checkpoint=ef.CheckpointConfig(interval="1s"),
    metrics=ef.MetricsConfig(window="500ms"),
    balance=ef.BalanceConfig(after="2s"),
    autoscale=ef.AutoscaleConfig(ef.ThresholdPolicy(utilisation_band=0.15), mode="act", interval="2s", max_parallelism=4),
)


def write_replay(departures: DataFrame, path: Path, story: tuple[Phase, ...]) -> None:
    """Write the first departures of all phases in order: `n` counts them, `due` is the time of each, in seconds."""
    rows = sum(phase.rows for phase in story)
    table = departures.orderBy(*departures.columns).limit(rows).toArrow()
    count = table.num_rows
    ends = list(accumulate((phase.rows for phase in story), initial=0))
    times = list(accumulate((phase.seconds for phase in story), initial=0))
    numbers = np.arange(count)
    stormy = np.zeros(count, bool)
    for phase, first in zip(story, ends, strict=False):
        stormy[first : first + phase.rows] = phase.storm
    hot = pa.array(stormy & (numbers % 3 == 0))
    table = pa.table({
        "n": numbers,
        "due": np.interp(numbers, ends, times),
        "dest": pc.if_else(hot, HOT, table["dest"]),
        "dep_delay": pc.fill_null(table["dep_delay"], 0),
    })  # fmt: skip
    pq.write_table(table, path)


def storm(replay: Path, output: Path, slower: float = 1.0) -> ef.Dataflow:
    """Build the dataflow: the number of departures of each destination and their total delay, after each of them."""
    path, cost = str(replay), COST * slower

    def departures(_partition: int, position: Any) -> Any:
        rows = pq.read_table(path).to_pylist()[position or 0 :]
        begun = time.monotonic() - (rows[0]["due"] if rows else 0.0)
        for row in rows:
            while time.monotonic() < begun + row["due"]:
                yield None  # nothing now: resume later
            yield row, row["n"] + 1

    def totals(state: Any, row: dict[str, Any]) -> Any:
        time.sleep(cost)
        count, total = state or (0, 0)
        state = [count + 1, total + row["dep_delay"]]
        return state, {"n": row["n"], "dest": row["dest"], "departures": state[0], "total": state[1]}

    flow = ef.Dataflow("storm")
    source = flow.read(ef.from_generator(departures, poll_every="20ms", name="departures")).parallelism(1, fixed=True)
    running = source.key_by("dest").stateful_map(totals).named("totals").parallelism(2, between=(2, 4))
    running.write(ef.write_parquet(output))
    return flow


def storm_in_spark(spark: SparkSession, replay: Path) -> DataFrame:
    """Return the result of the same query by Spark in batch."""
    so_far = Window.partitionBy("dest").orderBy("n").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return spark.read.parquet(str(replay)).select(
        "n", "dest", F.count("*").over(so_far).alias("departures"), F.sum("dep_delay").over(so_far).alias("total")
    )
