"""Flows with joins for simulated runs: two disordered streams with ties, nulls in keys, and rows without a partner."""

from __future__ import annotations

from datetime import UTC, datetime
from math import nan
from random import Random
from typing import Any

import pyarrow as pa

import evenflow as ef


def rows(seed: int, name: str, count: int = 36) -> list[dict[str, Any]]:
    """Return rows that are up to half a second out of order, with equal times among them; half of the keys are on one side
    only.
    """
    random = Random(seed)
    keys = ("a", "b", "c", "d", None, name)
    times = [10_000 + i * 100 - random.randrange(5) * 100 for i in range(count)]
    return [{"key": random.choice(keys), "ts": t, name: i, "both": random.randrange(9)} for i, t in enumerate(times)]


def sides(flow: ef.Dataflow) -> tuple[ef.Stream, ef.Stream]:
    left, right = (flow.read(ef.from_items(rows(seed, name), event_time="ts", max_delay="500ms")) for seed, name in ((3, "l"), (4, "r")))
    return left, right


def _bounded(how: Any, within: Any) -> ef.Dataflow:
    flow = ef.Dataflow("joined")
    left, right = sides(flow)
    left.key_by("key").join(right.key_by("key"), within, how=how).write(ef.to_list([]))
    return flow


def join_inner() -> ef.Dataflow:
    return _bounded("inner", ef.between("-300ms", "500ms"))


def join_left() -> ef.Dataflow:
    return _bounded("left", ef.between(0, "400ms"))


def join_right() -> ef.Dataflow:
    return _bounded("right", ef.between("-400ms", "-100ms"))


def join_full() -> ef.Dataflow:
    return _bounded("full", ef.between("-200ms", "300ms"))


def join_semi() -> ef.Dataflow:
    return _bounded("semi", ef.between("100ms", "600ms"))


def join_anti() -> ef.Dataflow:
    return _bounded("anti", ef.always("250ms"))


def join_always() -> ef.Dataflow:
    flow = ef.Dataflow("always")
    left, right = sides(flow)
    renamed = right.rename(key="id")
    left.key_by("key").join(renamed.key_by("id"), ef.always(), how="full", suffix="_r").write(ef.to_list([]))
    left.key_by("key").join(renamed.key_by("id"), ef.always(), how="semi").write(ef.to_list([], name="semi"))
    left.key_by("key").join(renamed.key_by("id"), ef.always(), how="anti").write(ef.to_list([], name="anti"))
    return flow


def join_with_itself() -> ef.Dataflow:
    flow = ef.Dataflow("self")
    left = flow.read(ef.from_items(rows(5, "l"), event_time="ts", max_delay="500ms"))
    left.key_by("key", "both").join(left.key_by("key", "both"), ef.between("-1s", "1s"), how="left").write(ef.to_list([]))
    return flow


def join_in_windows() -> ef.Dataflow:
    flow = ef.Dataflow("windows")
    left, right = sides(flow)
    left.key_by("key").join(right.key_by("key"), ef.sliding("600ms", every="300ms"), how="full").write(ef.to_list([]))
    left.key_by("key").join(right.key_by("key"), ef.tumbling("1s"), how="semi").write(ef.to_list([], name="semi"))
    return flow


def join_asof() -> ef.Dataflow:
    flow = ef.Dataflow("asof")
    left, right = sides(flow)
    left.key_by("key").join_asof(right.key_by("key")).write(ef.to_list([]))
    left.key_by("key").join_asof(right.key_by("key"), how="inner", max_age="200ms").write(ef.to_list([], name="young"))
    return flow


def join_then_windows() -> ef.Dataflow:
    flow = ef.Dataflow("after")
    left, right = sides(flow)
    joined = left.key_by("key").join(right.key_by("key"), ef.between("-500ms", "500ms"), how="full")
    joined.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count(), left=ef.count("l"), right=ef.count("r")).write(ef.to_list([]))
    return flow


class Meetings(ef.CoKeyedFunction):
    """Collects the rows of each side per key and second; a row of poison fails after it has changed everything."""

    lefts = ef.map_state()
    rights = ef.map_state()
    last = ef.value_state(ttl="2s")

    def on_left(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        return self._note(self.lefts, row, row["l"], context)

    def on_right(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        return self._note(self.rights, row, row["r"], context)

    def on_timer(self, key: Any, time: datetime, context: ef.KeyContext) -> Any:
        second = int(time.timestamp()) - 1
        left, right = self.lefts.pop(second, []), self.rights.pop(second, [])
        yield {"key": key, "second": second, "left": sorted(left), "right": sorted(right)}
        if (len(left) + len(right)) % 5 == 4:
            raise KeyError(second)

    def _note(self, side: Any, row: dict[str, Any], number: int, context: ef.KeyContext) -> Any:
        second = int(context.time.timestamp())
        side[second] = [*side.get(second, []), number]
        self.last = number
        context.timer(datetime.fromtimestamp(second + 1, UTC))
        if row["both"] == 3:
            raise ValueError(f"{number} is poison")
        yield {"key": key_text(row), "second": second, "left": [number], "right": []}


def key_text(row: dict[str, Any]) -> str:
    """Return the key of either side."""
    return str(row["key"] if "key" in row else row["id"])


def co_process() -> ef.Dataflow:
    flow = ef.Dataflow("meetings")
    left, right = sides(flow)
    numbers = pa.list_(pa.int64())
    types = pa.schema({"key": pa.string(), "second": pa.int64(), "left": numbers, "right": numbers})
    met = left.key_by("key").co_process(right.rename(key="id").key_by("id"), Meetings(), schema=types, on_error="dead_letter")
    met.write(ef.to_list([])).dead_letters.write(ef.to_list([], name="letters"))
    return flow


def join_in_sessions() -> ef.Dataflow:
    flow = ef.Dataflow("sessions")
    left, right = sides(flow)
    renamed = right.rename(key="id").key_by("id")
    left.key_by("key").join(renamed, ef.session("200ms"), how="full").write(ef.to_list([]))
    left.key_by("key").join(right.key_by("key"), ef.session("150ms")).write(ef.to_list([], name="inner"))
    left.key_by("key", "both").join(right.key_by("key", "both"), ef.session("500ms"), how="anti").write(ef.to_list([], name="anti"))
    return flow


def _float_key(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with keys that include NaN and both zeros."""
    return {**row, "key": (nan, -nan, 0.0, -0.0, 1.5, None)[row["both"] % 6]}


def join_by_floats() -> ef.Dataflow:
    flow = ef.Dataflow("floats")
    left, right = (side.map(_float_key).key_by("key") for side in sides(flow))
    left.join(right, ef.between("-300ms", "300ms"), how="full").select("l", "r").write(ef.to_list([]))
    left.join(right, ef.session("300ms"), how="full").select("l", "r").write(ef.to_list([], name="sessions"))
    left.join_asof(right).select("l", "r").write(ef.to_list([], name="asof"))
    left.aggregate(emit="final", n=ef.count(), of=ef.sum("l")).select("n", "of").write(ef.to_list([], name="counts"))
    left.stateful_map(_running).write(ef.to_list([], name="totals"))
    return flow


def _running(total: int | None, row: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    total = (total or 0) + 1
    return total, {"key": str(abs(row["key"] or 0.0)), "n": total}


def _last(row: dict[str, Any]) -> bool:
    return bool(row["both"] == 5 and row["ts"] > 12_000)


def late_sides(flow: ef.Dataflow) -> tuple[ef.KeyedStream, ef.KeyedStream]:
    """Return two sides; the columns of right are known from its first row, which arrives late."""
    left, right = sides(flow)
    late = right.filter(_last).map(lambda row: {"key": row["key"], "ts": row["ts"], "r": row["r"]})
    return left.key_by("key"), late.key_by("key")


def join_with_a_side_that_comes_late() -> ef.Dataflow:
    flow = ef.Dataflow("late-side")
    left, late = late_sides(flow)
    left.join(late, ef.between("-200ms", "300ms"), how="full").write(ef.to_list([]))
    return flow


def join_with_left_that_comes_late() -> ef.Dataflow:
    flow = ef.Dataflow("late-left")
    right, late = late_sides(flow)
    late.join(right, ef.between("-300ms", "200ms"), how="right").write(ef.to_list([]))
    return flow


def inner_join_with_a_side_that_comes_late() -> ef.Dataflow:
    flow = ef.Dataflow("late-inner")
    left, late = late_sides(flow)
    left.join(late, ef.between("-1s", "500ms")).write(ef.to_list([]))
    left.join(late, ef.always("400ms"), how="anti").write(ef.to_list([], name="anti"))
    return flow


def windows_with_a_side_that_comes_late() -> ef.Dataflow:
    flow = ef.Dataflow("late-windows")
    left, late = late_sides(flow)
    left.join(late, ef.sliding("600ms", every="300ms"), how="full").write(ef.to_list([]))
    return flow


def sessions_with_a_side_that_comes_late() -> ef.Dataflow:
    flow = ef.Dataflow("late-sessions")
    left, late = late_sides(flow)
    left.join(late, ef.session("200ms"), how="left").write(ef.to_list([]))
    return flow


def asof_with_a_side_that_comes_late() -> ef.Dataflow:
    flow = ef.Dataflow("late-asof")
    left, late = late_sides(flow)
    left.join_asof(late).write(ef.to_list([]))
    return flow


def groups_with_a_side_that_comes_late() -> ef.Dataflow:
    flow = ef.Dataflow("late-groups")
    left, late = late_sides(flow)
    for name, windows in (("tumbling", ef.tumbling("500ms")), ("sessions", ef.session("200ms"))):
        left.co_group(late, windows, _counts).named(name).write(ef.to_list([], name=f"{name}_rows"))
    return flow


def _counts(key: Any, window: ef.Window, left: list[dict[str, Any]], right: list[dict[str, Any]]) -> Any:
    yield {"key": str(key), "start": window.start, "left": len(left), "right": len(right)}


def _precise(row: dict[str, Any]) -> dict[str, Any]:
    """Keys that differ by nanoseconds."""
    return {**row, "key": None if row["key"] is None else 1_700_000_000_000_000_000 + row["both"] % 4}


def joins_by_nanoseconds() -> ef.Dataflow:
    flow = ef.Dataflow("nanoseconds")
    left, right = (side.map(_precise).cast(key=pa.timestamp("ns")).key_by("key") for side in sides(flow))
    left.join(right, ef.between("-300ms", "300ms"), how="full").select("l", "r").write(ef.to_list([]))
    left.join_asof(right).select("l", "r").write(ef.to_list([], name="asof"))
    left.aggregate(emit="final", n=ef.count(), of=ef.sum("l")).select("n", "of").write(ef.to_list([], name="counts"))
    return flow


def join_with_an_empty_side() -> ef.Dataflow:
    """Join empty sides: the columns of `none` are known from the plan, those of `never` not at all."""
    flow = ef.Dataflow("empty-side")
    left, right = sides(flow)
    keyed, none = left.key_by("key"), right.filter(ef.col("both") > 9).rename(key="id").key_by("id")
    keyed.join(none, ef.session("200ms"), how="left").select("l", "id", "r").write(ef.to_list([]))
    keyed.join_asof(none).select("l", "r").write(ef.to_list([], name="asof"))
    never = right.filter(lambda row: False).map(lambda row: row).key_by("key")
    keyed.join(never, ef.tumbling("500ms"), how="left").write(ef.to_list([], name="never"))
    return flow


def summary(key: Any, window: ef.Window, left: list[dict[str, Any]], right: list[dict[str, Any]]) -> Any:
    """Return the order of the rows as text; fails for some windows."""
    if (len(left) + len(right)) % 5 == 4:
        raise ValueError(f"{len(left)} and {len(right)} rows")
    seen = " ".join(str(row["l"]) for row in left) + "|" + " ".join(str(row["r"]) for row in right)
    yield {"key": str(key), "start": window.start, "end": window.end, "seen": seen}


def co_group() -> ef.Dataflow:
    flow = ef.Dataflow("groups")
    left, right = sides(flow)
    keyed, other = left.key_by("key"), right.rename(key="id").key_by("id")
    for name, windows in (
        ("tumbling", ef.tumbling("1s")),
        ("sliding", ef.sliding("600ms", every="300ms")),
        ("sessions", ef.session("200ms")),
    ):
        groups = keyed.co_group(other, windows, summary, on_error="dead_letter").named(name).write(ef.to_list([], name=f"{name}_rows"))
        groups.dead_letters.write(ef.to_list([], name=f"{name}_letters"))
    return flow


LATE_SIDES = (
    join_with_a_side_that_comes_late, join_with_left_that_comes_late, inner_join_with_a_side_that_comes_late,
    windows_with_a_side_that_comes_late, sessions_with_a_side_that_comes_late, asof_with_a_side_that_comes_late,
    groups_with_a_side_that_comes_late,
)  # fmt: skip

JOINS = (
    join_inner, join_left, join_right, join_full, join_semi, join_anti, join_always, join_with_itself, join_in_windows, join_asof,
    join_then_windows, co_process, join_in_sessions, co_group,
    join_with_an_empty_side, join_by_floats, joins_by_nanoseconds, *LATE_SIDES,
)  # fmt: skip
