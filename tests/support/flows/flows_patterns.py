"""Flows with patterns, for simulated runs."""

from __future__ import annotations

from typing import Any

from disordered import disordered

import evenflow as ef


def rows(**options: Any) -> Any:
    """Return rows whose times differ, so that the order of a key's rows is known."""
    return ef.from_items([{**row, "ts": row["ts"] * 100 + row["seq"]} for row in disordered(**options)], event_time="ts", max_delay="60s")


def rising(row: dict[str, Any], matched: dict[str, list[dict[str, Any]]]) -> bool:
    return all(row["price"] > before["price"] for before in matched["start"] + matched.get("up", []))


def patterns() -> ef.Dataflow:
    """Match steps, repeated and absent ones, and conditions on the rows so far; two patterns skip."""
    flow = ef.Dataflow("patterns")
    keyed = flow.read(rows()).key_by("key")
    low, high = ef.col("price") < 400, ef.col("price") > 500
    plain = [ef.step("low", low), ef.step("high", high, contiguity="next")]
    keyed.pattern(plain, within="100s").named("plain").write(ef.to_list([], name="plain_rows"))
    up = [ef.step("start", lambda row: row["half"] is not None), ef.step("up", rising, times=(2, None))]
    keyed.pattern(up, within="200s", skip="past_last").named("up").write(ef.to_list([], name="up_rows"))
    alone = [ef.step("low", low), ef.step("high", high, absent=True)]
    keyed.pattern(alone, within="80s", skip="to_next").named("alone").write(ef.to_list([], name="alone_rows"))
    between = [ef.step("a", low), ef.step("none", ef.col("half").fill_null(False), absent=True), ef.step("b", high, times=(1, 2))]
    matches = keyed.pattern(between, within="150s", skip=("to_last", "b")).named("between")
    matches.key_by("key").window(ef.session("1h")).aggregate(n=ef.count()).write(ef.to_list([], name="sessions"))
    matches.write(ef.to_list([], name="between_rows"))
    return flow


def absent_to_the_end() -> ef.Dataflow:
    """Match rows that no other follows, of many lanes: these matches wait for the watermark."""
    flow = ef.Dataflow("absent")
    lanes = flow.read(rows(rows=96)).key_by("lane")
    steps = [ef.step("first", ef.col("price") > 200), ef.step("more", ef.col("price") > 300, absent=True)]
    lanes.pattern(steps, within="150s").write(ef.to_list([]))
    return flow


FLOWS = (patterns, absent_to_the_end)
