"""Flows with joins of Zipf keys for simulated runs: few keys have most rows, and which is the hottest changes in mid-stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import evenflow as ef

KEYS, EXPONENT = 12, 1.5


def rows(seed: int, name: str, count: int) -> list[dict[str, Any]]:
    """Return rows up to half a second out of order. Key 0 is the hottest in the first half and one of the coldest in the
    second.
    """
    random = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, KEYS + 1) ** EXPONENT
    ranks = random.choice(KEYS, count, p=weights / weights.sum())
    keys = np.where(np.arange(count) < count // 2, ranks, (ranks + KEYS // 2) % KEYS)
    times = 10_000 + np.arange(count) * 50 - random.integers(0, 10, count) * 50
    return [{"key": f"key-{key}", "ts": t, name: i} for i, (key, t) in enumerate(zip(keys.tolist(), times.tolist(), strict=True))]


def sides(flow: ef.Dataflow, left: int, right: int) -> tuple[ef.Stream, ef.Stream]:
    streams = [
        flow.read(ef.from_items(rows(seed, name, count), event_time="ts", max_delay="500ms"))
        for seed, name, count in ((11, "l", left), (12, "r", right))
    ]
    return streams[0], streams[1]


def _joined(how: Any, within: Any, left: int = 160, right: int = 40) -> Callable[[], ef.Dataflow]:
    def make_flow() -> ef.Dataflow:
        flow = ef.Dataflow("zipf")
        one, two = sides(flow, left, right)
        one.key_by("key").join(two.key_by("key"), within, how=how).write(ef.to_list([]))
        return flow

    name = within.describe() if hasattr(within, "describe") else "windows"
    make_flow.__name__ = f"{how}, {name}"
    return make_flow


def zipf_asof() -> ef.Dataflow:
    flow = ef.Dataflow("zipf")
    one, two = sides(flow, 160, 40)
    one.key_by("key").join_asof(two.key_by("key")).write(ef.to_list([]))
    return flow


inner = _joined("inner", ef.between("-1s", "1s"))
inner_right = _joined("inner", ef.between("-1s", "1s"), 40, 160)
left = _joined("left", ef.between("-500ms", "500ms"))
right = _joined("right", ef.between("-1s", "1s"), 40, 160)
semi = _joined("semi", ef.between("-200ms", "200ms"))
anti = _joined("anti", ef.always("250ms"))
left_in_windows = _joined("left", ef.tumbling("1s"))
full = _joined("full", ef.between("-500ms", "500ms"))

DEALABLE = (inner, inner_right, left, right, semi, anti, left_in_windows, zipf_asof)
