"""The dataflows whose needs are measured, each with Python functions and with columns.

>>> len(FLOWS), sorted(STATES)[0]
(11, 'count/int keys')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

import evenflow as ef

KEYS = 100_000
EVENT_RATE = 100_000.0
"""Rows per second of event time, so that a key has one each second."""

WINDOW, GAP, JOIN_WINDOW = "10s", "3s", "1s"
RATE = 100_000
"""Rows per second with which state is filled."""

Flow = Callable[[ef.Stream, ef.Stream], ef.Stream]
"""Adds the operators to a source; the second source is for joins."""


def source(rows: int, seed: int = 0) -> Any:
    """Return a source of int keys that is as fast as the job."""
    return ef.generate(total=rows, keys=KEYS, event_rate=EVENT_RATE, seed=seed, name=f"source-{seed}")


def add(row: dict[str, Any]) -> dict[str, Any]:
    """Compute a column, by row."""
    return {"key": row["key"], "ts": row["ts"], "cents": row["value"] * 100}


def add_columns(batch: Any) -> dict[str, Any]:
    """Compute a column, by batch."""
    return {"key": batch["key"], "ts": batch["ts"], "cents": pc.multiply(batch["value"], 100)}


def count(state: int | None, row: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Emit each row's number among its key's rows."""
    n = (state or 0) + 1
    return n, {"key": row["key"], "n": n}


def total(key: int, window: Any, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Emit the sum of a window."""
    yield {"key": key, "end": window.end, "n": len(rows), "total": sum(row["value"] for row in rows)}


def pairs(key: int, _window: Any, left: list[dict[str, Any]], right: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Emit the pairs of a window."""
    for one in left:
        for other in right:
            yield {"key": key, "value": one["value"], "value_right": other["value"]}


def sums() -> dict[str, Any]:
    """Return the aggregates of windows."""
    return {"n": ef.count(), "total": ef.sum("value")}


FLOWS: Final[Mapping[str, Flow]] = {
    "source alone": lambda rows, _: rows,
    "map/python": lambda rows, _: rows.map(add),
    "map/columns": lambda rows, _: rows.map_batches(add_columns),
    "running count by key/python": lambda rows, _: rows.key_by("key").stateful_map(count),
    "running count by key/columns": lambda rows, _: rows.key_by("key").aggregate(n=ef.count()),
    "sum in windows/python": lambda rows, _: rows.key_by("key").window(ef.tumbling(WINDOW)).process(total),
    "sum in windows/columns": lambda rows, _: rows.key_by("key").window(ef.tumbling(WINDOW)).aggregate(**sums()),
    "sessions/python": lambda rows, _: rows.key_by("key").window(ef.session(GAP)).process(total),
    "sessions/columns": lambda rows, _: rows.key_by("key").window(ef.session(GAP)).aggregate(**sums()),
    "join/python": lambda rows, other: rows.key_by("key").co_group(other.key_by("key"), ef.tumbling(JOIN_WINDOW), pairs),
    "join/columns": lambda rows, other: rows.key_by("key").join(other.key_by("key"), ef.tumbling(JOIN_WINDOW)),
}


def flow_of(name: str, rows: int, sink: Any) -> ef.Dataflow:
    """Return a flow of that many rows, both sides of a join together."""
    flow = ef.Dataflow("sizing-" + name.replace("/", "-").replace(" ", "-"))
    joins = name.startswith("join")
    left = flow.read(source(rows // 2 if joins else rows))
    right = flow.read(source(rows // 2, seed=1)) if joins else left
    FLOWS[name](left, right).write(sink)
    return flow


def remember(state: dict[str, Any] | None, row: dict[str, Any]) -> tuple[dict[str, Any], None]:
    """Keep a dict of three numbers for each key."""
    state = state or {"n": 0, "total": 0.0, "last": 0}
    return {"n": state["n"] + 1, "total": state["total"] + row["value"], "last": row["seq"]}, None


def keep(rows: ef.KeyedStream) -> ef.Stream:
    """Keep a count and a sum for each key, as columns."""
    return rows.aggregate(emit="final", **sums())


STATES: Final[Mapping[str, tuple[Callable[[ef.KeyedStream], ef.Stream], bool, str]]] = {
    "dict/int keys": (lambda rows: rows.stateful_map(remember), False, "memory"),
    "dict/int keys/LMDB": (lambda rows: rows.stateful_map(remember), False, "lmdb"),
    "count/int keys": (keep, False, "memory"),
    "count/string keys": (keep, True, "memory"),
    "count/int keys/LMDB": (keep, False, "lmdb"),
}
"""The operator that keeps each state, True if its keys are strings, and the backend."""


def state_flow(name: str, keys: int, sink: Any) -> ef.Dataflow:
    """Return an endless flow that comes to each of `keys` keys in turn."""

    def keyed(batch: Any) -> dict[str, Any]:
        key = pa.array(batch["seq"].to_numpy() % keys)
        key = pc.binary_join_element_wise("customer", key.cast(pa.string()), "-") if STATES[name][1] else key
        return {"key": key, "value": batch["value"], "seq": batch["seq"]}

    flow = ef.Dataflow(f"sizing-state-{keys}")
    rows = flow.read(ef.generate(rate=RATE, every="20ms")).map_batches(keyed).named("keyed")
    STATES[name][0](rows.key_by("key")).named("state").write(sink)
    return flow
