"""Flows of aggregates that keep values: with ties, nulls, late types, and lists that become rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from disordered import disordered, source

import evenflow as ef


def kept_values() -> dict[str, Any]:
    positive = ef.col("value") > 0
    return {
        "n": ef.count(where=positive),
        "distinct": ef.count_distinct("value"),
        "halves": ef.count_distinct("half", where=positive),
        "median": ef.median("price"),
        "low": ef.quantile("value", 0.1),
        "variance": ef.variance("price"),
        "spread": ef.stddev("value", where="half"),
        "values": ef.collect("value"),
        "best": ef.top(2, by="half", ties=True, columns=["seq"]),
        "dearest": ef.max_by("value", "price"),
        "cheapest": ef.min_by("half", "lane"),
    }


def windows_of_kept_values() -> ef.Dataflow:
    flow = ef.Dataflow("kept")
    flow.read(source()).key_by("key").window(ef.tumbling("1s")).aggregate(**kept_values()).write(ef.to_list([]))
    return flow


def sliding_windows_of_kept_values() -> ef.Dataflow:
    flow = ef.Dataflow("slid")
    windows = flow.read(source()).key_by("key").window(ef.sliding("2s", every="500ms"))
    windows.aggregate(**kept_values()).write(ef.to_list([]))
    return flow


def kept_values_so_far() -> ef.Dataflow:
    flow = ef.Dataflow("sofar")
    keyed = flow.read(source()).key_by("key")
    few = ("distinct", "median", "best", "spread")
    keyed.aggregate(**{name: kept_values()[name] for name in few}, rows=ef.count()).write(ef.to_list([], name="updates"))
    keyed.aggregate(**kept_values(), emit="final").write(ef.to_list([], name="finals"))
    return flow


def ranked_rows() -> ef.Dataflow:
    """Rank the rows of a top, in windows and in total; with ties at the border, and more places than rows."""
    flow = ef.Dataflow("ranked")
    rows = flow.read(source())
    windows = rows.key_by("key").window(ef.tumbling("2s")).aggregate(rows=ef.top(3, by="value", ties=True))
    windows.explode("rows", position="rank").write(ef.to_list([], name="windows"))
    newest = rows.key_by("key", "half").aggregate(emit="final", last=ef.top(1, by="ts"), values=ef.collect("value"))
    newest.drop("values").explode("last").write(ef.to_list([], name="newest"))
    newest.drop("last").explode("values", position="place").write(ef.to_list([], name="values"))
    by = [("price", "descending"), ("ts", "ascending")]
    best = rows.key_by("lane").aggregate(emit="final", best=ef.top(100, by=by, columns=["price", "seq"]))
    best.explode("best", position="rank").write(ef.to_list([], name="best"))
    return flow


def kept_types_that_come_late() -> ef.Dataflow:
    """Make late types: a worker may see only nulls of a column for long, and then doesn't know its type; another knows it
    earlier.
    """
    flow = ef.Dataflow("late_types")

    def vague(batch: pa.RecordBatch) -> pa.RecordBatch:
        value = pc.if_else(pc.greater(batch["seq"], 20), batch["value"], pa.scalar(None, pa.int64()))
        value = pa.nulls(len(value)) if value.null_count == len(value) else value
        value = value.cast(pa.float64()) if len(value) % 2 and not pa.types.is_null(value.type) else value
        return pa.record_batch({"key": batch["key"], "seq": batch["seq"], "value": value, "half": batch["half"]})

    keyed = flow.read(source()).map_batches(vague).key_by("key")
    functions = {
        "distinct": ef.count_distinct("value"),
        "median": ef.median("value", where="half"),
        "variance": ef.variance("value"),
        "values": ef.collect("value"),
        "top": ef.top(2, by="seq"),
        "best": ef.top(2, by="value", ties=True, columns=["seq"]),
        "dearest": ef.max_by("seq", "value"),
    }
    keyed.aggregate(**functions, emit="final").write(ef.to_list([], name="totals"))
    few = ("distinct", "values", "top")
    keyed.aggregate(**{name: functions[name] for name in few}, n=ef.count()).write(ef.to_list([], name="updates"))
    keyed.window(ef.sliding("2s", every="1s")).aggregate(**functions).write(ef.to_list([], name="windows"))
    return flow


def early_source() -> Any:
    """Return a source whose watermarks make many rows late."""
    return ef.from_items(disordered(), event_time="ts", max_delay="0ms")


FOLLOWED: dict[str, Any] = {"n": ef.count(), "known": ef.count("value"), "total": ef.sum("value"), "median": ef.median("price")}


def early_results() -> ef.Dataflow:
    flow = ef.Dataflow("early")
    keyed = flow.read(source()).key_by("key")
    keyed.window(ef.tumbling("1s")).aggregate(emit="update", **FOLLOWED).write(ef.to_list([], name="each"))
    sliding = keyed.window(ef.sliding("2s", every="500ms"))
    sliding.aggregate(emit="update", every="300ms", **FOLLOWED).write(ef.to_list([], name="sliding"))
    return flow


def corrected_results() -> ef.Dataflow:
    flow = ef.Dataflow("corrected")
    keyed = flow.read(early_source()).key_by("key")
    keyed.window(ef.tumbling("200ms")).aggregate(lateness="2s", **FOLLOWED).write(ef.to_list([], name="tumbling"))
    sliding = keyed.window(ef.sliding("1s", every="250ms")).aggregate(lateness="600ms", **FOLLOWED)
    sliding.write(ef.to_list([], name="sliding")).late.write(ef.to_list([], name="late"))
    return flow


def early_and_corrected_results() -> ef.Dataflow:
    flow = ef.Dataflow("both")
    keyed = flow.read(early_source()).key_by("half", "key")
    often = keyed.window(ef.tumbling("500ms")).aggregate(emit="update", lateness="1s", **FOLLOWED)
    often.write(ef.to_list([], name="often"))
    seldom = keyed.window(ef.sliding("1s", every="500ms")).aggregate(emit="update", every="700ms", lateness="500ms", **FOLLOWED)
    seldom.write(ef.to_list([], name="seldom"))
    return flow


def kept_values_in_other_windows() -> ef.Dataflow:
    """Keep values in sessions, and in windows without keys."""
    flow = ef.Dataflow("others")
    rows = flow.read(source())
    values = {name: function for name, function in kept_values().items() if name != "values"}
    rows.key_by("key").window(ef.session("700ms")).aggregate(**values).write(ef.to_list([], name="sessions"))
    rows.window(ef.tumbling("1s")).aggregate(best=ef.top(2, by="price"), n=ef.count_distinct("key")).write(ef.to_list([], name="all"))
    return flow


FLOWS = (
    windows_of_kept_values, sliding_windows_of_kept_values, kept_values_so_far, ranked_rows, kept_types_that_come_late,
    early_results, corrected_results, early_and_corrected_results, kept_values_in_other_windows,
)  # fmt: skip
