"""Flows that simulated runs share: operators without state of their own, on keyed streams and others."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from disordered import source

import evenflow as ef
from evenflow.testing import in_order


class Multiplied:
    """Made in each worker."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return row | {"twice": row["place"] * self.factor}


def rows_of_keyed_streams() -> ef.Dataflow:
    flow = ef.Dataflow("keyed_rows")
    keyed = flow.read(source()).key_by("key").filter(lambda row: row["seq"] % 5 != 2).rename(key="name", seq="place")
    keyed = keyed.map(partial(Multiplied, 2)).drop("price").select("name", "half", "twice", "value", "ts")
    low, high = keyed.branch(ef.col("value") < 0)
    low.window(ef.tumbling("1s")).aggregate(n=ef.count(), least=ef.min("value")).write(ef.to_list([], name="low"))
    types = {"name": "string", "half": "bool", "twice": "int64", "value": "int64", "ts": "int64"}
    parts = high.flat_map(lambda row: [row] * (row["twice"] % 3), schema=types)
    parts.aggregate(n=ef.count(), most=ef.max("twice"), emit="final").write(ef.to_list([], name="high"))
    again = high.key_by("half").map_batches(lambda batch: batch.select(["half", "twice"]))
    again.aggregate(total=ef.sum("twice"), emit="final").write(ef.to_list([], name="halves"))
    return flow


def branches_of_branches() -> ef.Dataflow:
    def late_enough(row: dict[str, Any]) -> bool:
        if row["seq"] % 9 == 4:
            raise ValueError(f"{row['seq']} is poison")
        return bool(row["seq"] > 20)

    flow = ef.Dataflow("branches_of_branches")
    known, unknown = flow.read(source()).branch(ef.col("value") >= 0)
    early, late = unknown.branch(late_enough, on_error="dead_letter")
    late.dead_letters.write(ef.to_list([], name="letters"))
    early.union(known).key_by("key").aggregate(n=ef.count(), emit="final").write(ef.to_list([], name="counts"))
    known.select("seq", "value").cast(value="float64", seq="string").write(ef.to_list([], name="known"))
    late.parallelism(2).write(ef.to_list([], name="late"))
    return flow


def first_rows() -> ef.Dataflow:
    """Select first rows: a lane's rows arrive in one order; where the whole row is the key, any order will do."""
    flow = ef.Dataflow("first_rows")
    rows = flow.read(source(rows=72))
    lanes = rows.key_by("lane")
    lanes.deduplicate("half").select("lane", "seq").write(ef.to_list([], name="halves"))
    lanes.deduplicate().aggregate(n=ef.count(), first=ef.min("seq"), emit="final").write(ef.to_list([], name="lanes"))
    rows.deduplicate("lane", ttl="1900ms").write(ef.to_list([], name="again"))
    lanes.deduplicate("half", ttl="3s").window(ef.tumbling("2s")).aggregate(n=ef.count()).write(ef.to_list([], name="windows"))
    rows.select("key", "half").deduplicate("half", "key").write(ef.to_list([], name="pairs"))
    return flow


def awaited_rows() -> ef.Dataflow:
    """Await coroutines that end in another order than they began, and some that fail."""

    async def late(row: dict[str, Any]) -> dict[str, Any]:
        for _ in range(row["seq"] % 4):
            await asyncio.sleep(0)
        if row["seq"] % 10 == 7:
            raise ValueError(f"{row['seq']} is poison")
        return {"seq": row["seq"], "lane": row["lane"], "price": row["price"]}

    flow = ef.Dataflow("awaited")
    rows = flow.read(source()).map_async(late, concurrency=3, on_error="dead_letter")
    rows.dead_letters.write(ef.to_list([], name="letters"))
    rows.key_by("lane").stateful_map(in_order("seq", lanes=12)).write(ef.to_list([], name="ordered"))
    anyhow = rows.map_async(late, concurrency=5, ordered=False).key_by("lane").window(ef.tumbling("1s"))
    anyhow.aggregate(n=ef.count(), total=ef.sum("price")).write(ef.to_list([], name="windows"))
    return flow


def gathered_rows() -> ef.Dataflow:
    """Gather rows for one call behind keyed state, whose keys move; the function drops and repeats rows with event time."""

    def repeated(batch: pa.RecordBatch) -> pa.RecordBatch:
        times = pc.multiply(batch["ts"], 1000).cast(pa.timestamp("us"))
        places = np.repeat(np.arange(batch.num_rows), batch["seq"].to_numpy() % 3)
        return batch.append_column("at", times).take(pa.array(places))

    flow = ef.Dataflow("gathered")
    lanes = flow.read(source()).key_by("lane").stateful_map(in_order("seq", lanes=12))
    gathered = lanes.map_batches(lambda batch: batch, batch_size=4, timeout="400ms")
    gathered.key_by("lane").stateful_map(in_order("seq", lanes=12)).write(ef.to_list([], name="ordered"))
    windows = gathered.map_batches(repeated, batch_size=3, timeout="1s", event_time="at").key_by("key").window(ef.tumbling("1s"))
    windows.aggregate(n=ef.count(), total=ef.sum("price")).write(ef.to_list([], name="windows"))
    return flow


NAMES = pa.table({
    "key": ["a", "b", "b", None, "z"], "half": [True, True, False, True, None], "value": [1.5, 2.5, 3.5, 4.5, 5.5],
    "name": pa.array(["ann", "bob", "bea", "nil", "zoe"]).dictionary_encode(),
})  # fmt: skip


def rows_with_names() -> ef.Dataflow:
    """Look up keys that are repeated, null, missing, of several columns and of several widths."""
    flow = ef.Dataflow("names")
    rows = flow.read(source()).select("key", "half", "seq", "value", "lane")
    named = rows.lookup(NAMES, on="key", columns=["name", "value"]).write(ef.to_list([], name="named"))
    named.key_by("name").aggregate(n=ef.count(), total=ef.sum("value_right"), emit="final").write(ef.to_list([], name="totals"))
    rows.lookup(lambda: NAMES, on="key", refresh="10ms").write(ef.to_list([], name="read again"))
    rows.lookup(NAMES, on=["key", "half"], how="inner", unique=True).write(ef.to_list([], name="pairs"))
    lanes = ef.from_items([{"number": i, "side": "left" if i % 2 else "right"} for i in range(0, 12, 3)])
    rows.key_by("lane").lookup(lanes, on={"lane": "number"}).window(ef.tumbling("1s")).aggregate(
        n=ef.count(), sides=ef.count("side")
    ).write(ef.to_list([], name="lanes"))
    return flow


def computed_columns() -> ef.Dataflow:
    """Compute columns, and aggregates of expressions: in windows, running, of the rows of a condition that guards a division."""
    value, price, lane = ef.col("value"), ef.col("price"), ef.col("lane")
    flow = ef.Dataflow("computed")
    rows = flow.read(source()).with_columns(worth=price * value, side=ef.when(value > 0).then(ef.lit("up")).otherwise(ef.col("key") + "-"))
    rows.select("seq", "worth", "side", slot=lane % 5, known=value.is_not_null()).write(ef.to_list([], name="rows"))
    keyed = rows.key_by("key").with_columns(worth=(ef.col("worth") / 2).fill_null(0.5))
    functions = {
        "n": ef.count(value * 2),
        "worth": ef.sum(ef.col("worth") + price),
        "most": ef.max(value // lane, where=lane != 0),
        "least": ef.min(value // lane, where=lane != 0),
        "sides": ef.count_distinct(ef.col("side").str.upper()),
        "best": ef.top(2, by=[(-value.abs(), "ascending"), ("seq", "ascending")], columns=["seq"]),
        "last": ef.max_by(lane * 100 + 1, by=ef.col("seq") % 7, where=ef.col("half")),
    }
    keyed.window(ef.tumbling("1s")).aggregate(**functions).write(ef.to_list([], name="windows"))
    keyed.aggregate(emit="final", **functions).filter(ef.col("worth") > 0).write(ef.to_list([], name="finals"))
    rows.key_by("lane").aggregate(emit="final", whole=ef.top(3, by=ef.col("seq") * -1)).explode("whole").write(ef.to_list([], name="whole"))
    return flow


FLOWS = (awaited_rows, rows_with_names, first_rows, rows_of_keyed_streams, branches_of_branches, computed_columns, gathered_rows)
