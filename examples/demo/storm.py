"""The second act: departures at 50,000 a second. A storm makes Chicago hot, a third worker joins, and new code comes, while the stream
goes on.

Each departure gets a seal, whose computation takes a worker some ten microseconds. Version 2 of the code lets early departures no
longer make up for late ones.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
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

from .replay import EVERY, Replay

HOT = "ORD"
ROUNDS, SHOWN = 8, 8
"""Hashes behind a seal, and its letters."""


@dataclass(frozen=True)
class Phase:
    """A phase of `rate` departures per second for `seconds`; with `storm`, two of five go to Chicago."""

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


CALM, STORM, JOIN, UPGRADE = "calm", "storm", "a worker joins", "new code"
PHASES = (
    Phase(CALM, 50_000, 6, storm=False),
    Phase(STORM, 50_000, 12, storm=True),
    Phase(JOIN, 50_000, 8, storm=True),
    Phase(UPGRADE, 50_000, 26, storm=True),
)
LONGEST = 120.0
"""The most seconds of the last phase: it goes on until the new code has all keys."""

SETTINGS = ef.JobConfig(
    parallelism=2,
    checkpoint=ef.CheckpointConfig(interval="1s"),
    metrics=ef.MetricsConfig(window="500ms"),
    balance=ef.BalanceConfig(after="2s", least_busy=0.05),  # so that it also acts in a slower demo
)


def write_replay(departures: DataFrame, path: Path, phases: tuple[Phase, ...]) -> None:
    """Write the departures of all phases, again and again, and of the last for its longest time.

    `n` counts them, `due` is the time of each, in seconds.
    """
    last = phases[-1]
    story = (*phases[:-1], replace(last, seconds=LONGEST * PHASES[-1].rate / last.rate))
    year = departures.orderBy(*departures.columns).select("dest", "dep_delay").toArrow()
    count = sum(phase.rows for phase in story)
    ends = list(accumulate((phase.rows for phase in story), initial=0))
    times = list(accumulate((phase.seconds for phase in story), initial=0))
    numbers = np.arange(count)
    stormy = np.zeros(count, bool)
    for phase, first in zip(story, ends, strict=False):
        stormy[first : first + phase.rows] = phase.storm
    hot, repeated = pa.array(stormy & (numbers % 5 < 2)), year.take(pa.array(numbers % year.num_rows))
    table = pa.table({
        "n": numbers,
        "due": np.interp(numbers, ends, times),
        "dest": pc.if_else(hot, HOT, repeated["dest"]),
        "dep_delay": pc.fill_null(repeated["dep_delay"], 0),
    })  # fmt: skip
    pq.write_table(table, path)


def seal(text: str) -> str:
    """Return the seal of a text."""
    for _ in range(ROUNDS):
        text = hashlib.sha256(text.encode()).hexdigest()
    return text[:SHOWN]


def storm(replay: Path, output: Path, version: int = 1, *, slower: float = 1.0) -> ef.Dataflow:
    """Build a version of the dataflow: the departures of each destination and their total delay so far, after each of them.

    With `slower`, batches are as large as at full speed: what a batch costs is the same on each worker, so smaller ones hide the skew.
    """

    def totals(state: Any, row: dict[str, Any]) -> Any:
        count, total = state or (0, 0)
        delay = row["dep_delay"] if version == 1 else max(row["dep_delay"], 0)
        state = [count + 1, total + delay]
        sealed = seal(f"{row['dest']}{row['n']}")
        return state, {"n": row["n"], "dest": row["dest"], "departures": state[0], "total": state[1], "seal": sealed, "version": version}

    flow = ef.Dataflow("storm")
    source = flow.read(Replay(replay, EVERY * slower)).parallelism(1, fixed=True)
    running = source.key_by("dest").stateful_map(totals).named("totals").parallelism(2)
    running.write(ef.write_parquet(output))
    return flow


def storm_in_spark(spark: SparkSession, replay: Path, output: Path, departures: int) -> DataFrame:
    """Return the result of the same query over the first `departures` by Spark in batch.

    Which version of the code had a departure is read from `output`; of a destination, these never go back from 2 to 1.
    """
    versions = spark.read.parquet(str(output)).groupBy("n").agg(F.max("version").alias("version"))
    so_far = Window.partitionBy("dest").orderBy("n").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    sealed = F.concat("dest", F.col("n").cast("string"))
    for _ in range(ROUNDS):
        sealed = F.sha2(sealed, 256)
    delay = F.when(F.col("version") == 1, F.col("dep_delay")).otherwise(F.greatest("dep_delay", F.lit(0)))
    rows = spark.read.parquet(str(replay)).where(F.col("n") < departures).join(versions, "n", "left")
    return rows.select(
        "n",
        "dest",
        F.count("*").over(so_far).alias("departures"),
        F.sum(delay).over(so_far).alias("total"),
        F.substring(sealed, 1, SHOWN).alias("seal"),
        F.max("version").over(so_far).alias("version"),
    )
