"""Flows with joins for simulated runs: two disordered streams with ties, nulls in keys, and rows without a partner."""

from __future__ import annotations

from random import Random
from typing import Any

import evenflow as ef


def rows(seed: int, name: str, count: int = 36) -> list[dict[str, Any]]:
    """Rows that are up to half a second out of order, with equal times among them; half of the keys are on one side only."""
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


JOINS = (
    join_inner, join_left, join_right, join_full, join_semi, join_anti, join_always, join_with_itself, join_in_windows, join_asof,
    join_then_windows,
)  # fmt: skip
