"""Flows with sessions, count windows, windows without keys and functions of whole windows, for simulated runs."""

from __future__ import annotations

from typing import Any

from disordered import disordered

import evenflow as ef


def tied(**options: Any) -> Any:
    """Return rows whose times are multiples of 100 ms, so that some are equal, and some exactly a gap apart."""
    rows = [{**row, "ts": row["ts"] // 100 * 100} for row in disordered(**options)]
    return ef.from_items(rows, event_time="ts", max_delay="700ms")


def sessions_that_merge() -> ef.Dataflow:
    flow = ef.Dataflow("sessions")
    rows = flow.read(tied())
    rows.key_by("key").window(ef.session("600ms")).aggregate(
        n=ef.count(), known=ef.count("value"), total=ef.sum("value"), low=ef.min("value"), first=ef.first("seq"), last=ef.last("value")
    ).write(ef.to_list([], name="short"))
    long = rows.key_by("half", "key").window(ef.session("1500ms"))
    long = long.aggregate(n=ef.count(where=ef.col("value") > 0), middle=ef.median("price"), seqs=ef.collect("seq"))
    long.write(ef.to_list([], name="long"))
    return flow


def sessions_of_sessions() -> ef.Dataflow:
    """Nest sessions: the results of sessions have event times, and are never late."""
    flow = ef.Dataflow("nested")
    short = flow.read(tied()).key_by("key").window(ef.session("300ms")).aggregate(n=ef.count(), high=ef.max("price"))
    long = short.key_by("key").window(ef.session("900ms"))
    long.aggregate(parts=ef.count(), n=ef.sum("n"), high=ef.max("high")).write(ef.to_list([], name="sessions"))
    short.key_by("key").window(ef.tumbling("2s")).aggregate(parts=ef.count(), n=ef.sum("n")).write(ef.to_list([], name="windows"))
    return flow


def windows_without_keys() -> ef.Dataflow:
    """Aggregate without keys: one group, combined in parallel; its one key can move like any other."""
    flow = ef.Dataflow("global")
    rows = flow.read(tied())
    counts = rows.key_by("key").window(ef.sliding("2s", every="500ms")).aggregate(n=ef.count())
    counts.window(ef.tumbling("500ms")).aggregate(most=ef.max("n"), keys=ef.count()).write(ef.to_list([], name="most"))
    sliding = rows.window(ef.sliding("2s", every="1s")).aggregate(n=ef.count(), low=ef.min("value"), first=ef.first("seq"))
    sliding.parallelism(3).write(ef.to_list([], name="sliding"))
    updates = rows.window(ef.tumbling("1s")).aggregate(emit="update", n=ef.count(), total=ef.sum("price"))
    updates.node.parallelism = None  # that of the sink, or the updates would lose their order on the way
    updates.write(ef.to_list([], name="updates"))
    quiet = rows.filter(lambda row: row["seq"] % 9 < 3).window(ef.session("400ms")).aggregate(n=ef.count(), total=ef.sum("value"))
    quiet.parallelism(2).write(ef.to_list([], name="sessions"))
    return flow


def windows_of_rows() -> ef.Dataflow:
    """Aggregate windows of rows: a lane's rows come from one source worker, so their order is known."""
    flow = ef.Dataflow("rows")
    lanes = flow.read(tied(rows=120)).key_by("lane")
    lanes.window(ef.rows(3)).aggregate(n=ef.count(), total=ef.sum("value"), last=ef.max("seq")).write(ef.to_list([], name="tumbling"))
    sliding = lanes.window(ef.rows(6, every=4)).aggregate(
        n=ef.count(), low=ef.min("seq"), mean=ef.mean("price"), first=ef.first("seq"), prices=ef.median("price")
    )
    sliding.write(ef.to_list([], name="sliding"))
    timed = lanes.window(ef.rows(1)).aggregate(n=ef.count()).key_by("lane")
    timed.window(ef.tumbling("1s")).aggregate(n=ef.sum("n")).write(ef.to_list([], name="timed"))
    return flow


def summary(key: Any, window: ef.Window, rows: list[dict[str, Any]]) -> Any:
    """Return the order of the rows as text."""
    if len(rows) % 4 == 3:
        raise ValueError(f"{len(rows)} rows from {window.start:%S.%f}")
    yield {"key": str(key), "start": window.start, "end": window.end, "seqs": " ".join(str(row["seq"]) for row in rows)}
    if len(rows) > 1:
        yield {"key": "again", "start": window.start, "end": window.end, "seqs": str(rows[-1]["value"])}


def functions_of_windows() -> ef.Dataflow:
    flow = ef.Dataflow("windows")
    rows = flow.read(tied())
    keyed = rows.key_by("key")
    for name, windows in (
        ("tumbling", keyed.window(ef.tumbling("1s"))),
        ("sliding", rows.key_by("half", "key").window(ef.sliding("2s", every="1s"))),
        ("sessions", keyed.window(ef.session("600ms"))),
        ("all", rows.window(ef.tumbling("500ms"))),
    ):
        results = windows.process(summary, on_error="dead_letter").named(name).write(ef.to_list([], name=f"{name}_rows"))
        results.dead_letters.write(ef.to_list([], name=f"{name}_letters"))
    return flow


FLOWS = (functions_of_windows, sessions_that_merge, sessions_of_sessions, windows_without_keys, windows_of_rows)
