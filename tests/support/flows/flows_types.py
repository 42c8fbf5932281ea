"""Flows that simulated runs share: results change their types in mid-stream, so workers see the types in different orders."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from disordered import source

import evenflow as ef


def widening(row: dict[str, Any]) -> dict[str, Any]:
    """Make integers that become floats or decimals, structs with more and more fields, keys that are integers, floats and
    decimals.
    """
    seq = row["seq"]
    third = seq % 3
    return {
        "seq": seq,
        "lane": row["lane"],
        "ts": row["ts"],
        "number": third if seq < 16 else third + 0.5 * (seq % 2),
        "exact": third if seq < 24 else Decimal(third) + Decimal(seq % 2) / 4,
        "value": seq if seq < 20 else seq + 0.25,
        "cost": seq if seq < 12 else Decimal(seq) / 10 ** (seq % 4),
        "fields": {"a": seq} if seq < 20 else {"a": seq + 0.5, f"f{seq % 5}": str(seq)},
        "list": [] if seq < 8 else [seq] if seq < 24 else [seq, 0.5],
    }


def told(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the fields of its struct as text, without those that only other rows have."""
    return row | {"fields": ", ".join(f"{name}={float(value)}" for name, value in sorted(row["fields"].items()) if value is not None)}


def types_that_widen() -> ef.Dataflow:
    def counted(state: int | None, row: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        n = (state or 0) + 1
        return n, {"exact": row["exact"], "n": n}

    flow = ef.Dataflow("widening")
    rows = flow.read(source()).map(widening)
    numbers = rows.key_by("number")
    functions = {
        "n": ef.count(), "total": ef.sum("value"), "low": ef.min("value"), "high": ef.max("cost"), "sum": ef.sum("cost"),
        "distinct": ef.count_distinct("value"),
    }  # fmt: skip
    numbers.aggregate(**functions, emit="final").write(ef.to_list([], name="numbers"))
    rows.key_by(lambda row: row["exact"], column="key").aggregate(**functions, emit="final").write(ef.to_list([], name="exact"))
    rows.key_by("exact").stateful_map(counted).write(ef.to_list([], name="counted"))
    windows = rows.key_by("lane").window(ef.tumbling("1s"))
    windows.aggregate(**functions, last=ef.last("value"), lists=ef.collect("cost")).write(ef.to_list([], name="windows"))
    return flow


def rows_that_widen_in_joins() -> ef.Dataflow:
    """Join rows that are kept while their types change."""
    flow = ef.Dataflow("widening_joins")
    left = flow.read(source()).map(widening).select("lane", "seq", "value", "cost", "fields", "list")
    right = flow.read(
        ef.from_items([{"lane": lane, "ts": 10_000 + 600 * lane, "name": f"lane {lane}"} for lane in range(12)], event_time="ts")
    )
    joined = left.key_by("lane").join(right.select("lane", "name").key_by("lane"), ef.between("-1h", "1h"))
    joined.map(told).write(ef.to_list([]))
    return flow


def columns_that_widen() -> ef.Dataflow:
    """Make Arrow batches whose types differ from batch to batch."""

    def typed(batch: pa.RecordBatch) -> dict[str, Any]:
        late = batch["seq"].to_pylist()
        kind = pa.int32() if max(late) < 16 else pa.int64() if max(late) < 32 else pa.float64()
        return {"lane": batch["lane"], "seq": batch["seq"], "value": batch["seq"].cast(kind)}

    flow = ef.Dataflow("widening_columns")
    flow.read(source()).map_batches(typed).key_by("lane").aggregate(
        n=ef.count(), total=ef.sum("value"), high=ef.max("value"), emit="final"
    ).write(ef.to_list([]))
    return flow


def times_that_widen() -> ef.Dataflow:
    """Keys that are times of one unit in some batches and of another in others, and of a third on the other side of a join."""

    def timed(coarse: str, fine: str, column: str) -> Any:
        def columns(batch: pa.RecordBatch) -> dict[str, Any]:
            kind = pa.timestamp(fine if any(seq % 3 == 1 for seq in batch["seq"].to_pylist()) else coarse)
            lanes = pa.array([1_000 * (lane % 4) for lane in batch["lane"].to_pylist()], pa.timestamp("ms"))
            return {"at": lanes.cast(kind), column: batch["seq"]}

        return columns

    def counted(batch: pa.RecordBatch) -> dict[str, Any]:
        return {"at": batch["at"].cast("timestamp[us]"), **{name: batch[name] for name in batch.schema.names if name != "at"}}

    def grouped(key: Any, _window: ef.Window, left: list[Any], right: list[Any]) -> list[dict[str, Any]]:
        return [{"key": str(key)[:19], "left": sorted(row["l"] for row in left), "right": sorted(row["r"] for row in right)}]

    flow = ef.Dataflow("widening_times")
    left = flow.read(source()).map_batches(timed("us", "ns", "l")).key_by("at")
    right = flow.read(source()).map_batches(timed("s", "ms", "r")).key_by("at")
    left.aggregate(n=ef.count(), low=ef.min("l"), emit="final").map_batches(counted).write(ef.to_list([], name="counted"))
    left.window(ef.tumbling("1s")).aggregate(n=ef.count()).map_batches(counted).write(ef.to_list([], name="windows"))
    left.join(right, ef.tumbling("1s")).map_batches(counted).write(ef.to_list([], name="joined"))
    left.co_group(right, ef.session("300ms"), grouped).write(ef.to_list([], name="grouped"))
    return flow


FLOWS = (types_that_widen, rows_that_widen_in_joins, columns_that_widen, times_that_widen)
