"""Flows that simulated runs share: event time assigned in mid-stream, and windows behind it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from disordered import disordered

import evenflow as ef


def untimed(**options: Any) -> Any:
    return ef.from_items(disordered(**options))


def times_from_a_column() -> ef.Dataflow:
    """Assign times in each source worker, in the order in which it reads."""
    flow = ef.Dataflow("column_times")
    rows = flow.read(untimed()).filter(lambda row: row["seq"] % 7 != 3).with_time("ts", max_delay="500ms")
    rows.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count(), low=ef.min("value")).write(ef.to_list([], name="windows"))
    rows.key_by("half").window(ef.sliding("2s", every="500ms")).aggregate(last=ef.last("seq")).write(ef.to_list([], name="halves"))
    rows.select("seq").write(ef.to_list([], name="rows"))
    return flow


def times_from_a_function() -> ef.Dataflow:
    """Replace the source's times, which are hours off; rows without a time fail."""

    def time(row: dict[str, Any]) -> Any:
        if row["seq"] % 11 == 5:
            raise KeyError(row["seq"])
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=row["ts"])

    flow = ef.Dataflow("function_times")
    source = ef.from_items(disordered(), event_time="ts", max_delay="500ms")
    rows = flow.read(source).with_time(time, max_delay="500ms", on_error="dead_letter")
    rows.dead_letters.write(ef.to_list([], name="letters"))
    counts = rows.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count(), total=ef.sum("price"))
    counts.write(ef.to_list([], name="windows"))
    later = (
        counts.with_time("window_end", max_delay="1h").key_by("key").window(ef.tumbling("3s")).aggregate(n=ef.sum("n"), parts=ef.count())
    )
    later.write(ef.to_list([], name="later"))
    return flow


def times_behind_an_exchange() -> ef.Dataflow:
    """Assign times after an exchange: of one source worker, whose order each worker sees in part; then with a tolerance that no
    row exceeds.
    """
    flow = ef.Dataflow("far_times")
    rows = flow.read(untimed()).parallelism(1).map(dict).parallelism(3).with_time("ts", max_delay="500ms").parallelism(3)
    rows.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count()).write(ef.to_list([], name="windows"))
    counts = flow.read(untimed(seed=6)).named("others").key_by("lane").aggregate(n=ef.count(), ts=ef.min("ts"), emit="final")
    again = counts.with_time("ts", max_delay="1h").with_time(lambda row: row["ts"] + 1_000, max_delay="1h").key_by("n")
    again.window(ef.tumbling("2s")).aggregate(lanes=ef.count()).write(ef.to_list([], name="lanes"))
    return flow


def arrival_times() -> ef.Dataflow:
    """Assign arrival times: the window of a row is unknown, but each row is in one."""
    flow = ef.Dataflow("arrivals")
    windows = (
        flow.read(untimed()).with_arrival_time().key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count(), total=ef.sum("price"))
    )
    windows.key_by("key").aggregate(n=ef.sum("n"), total=ef.sum("total"), emit="final").write(ef.to_list([]))
    return flow


FLOWS = (times_from_a_column, times_from_a_function, times_behind_an_exchange, arrival_times)
