"""Streams for queries: `t` and `u` with event time, and the table `tab`."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import evenflow as ef

ROWS = [
    {"k": "a", "v": 7, "x": 1.5, "s": "tea", "b": True, "ts": datetime(2026, 1, 31, 12, 30, 15, tzinfo=UTC), "l": [1, 2], "d": {"a": 1}},
    {"k": None, "v": -7, "x": None, "s": None, "b": None, "ts": datetime(2026, 3, 1, tzinfo=UTC), "l": None, "d": None},
]


@pytest.fixture
def inputs():
    """Return the inputs of a query in a new flow."""
    flow = ef.Dataflow("query")
    other = [{"k": "a", "w": 1, "ts": datetime(2026, 1, 31, tzinfo=UTC)}]
    return {
        "t": flow.read(ef.from_items(ROWS, event_time="ts", name="t")),
        "u": flow.read(ef.from_items(other, event_time="ts", name="u")),
        "tab": pa.table({"k": ["a"], "name": ["Ann"]}),
    }


@pytest.fixture
def values(waiting_for_jobs):
    """Return a function that computes expressions of SQL for the two rows of `t`."""

    def computed(expression: str, **options):
        flow, rows = ef.Dataflow("values"), []
        stream = flow.read(ef.from_items(ROWS, event_time="ts"))
        ef.sql(f"SELECT {expression} AS c FROM t", t=stream, **options).write(ef.to_list(rows))
        flow.run(runtime="local").wait()
        return [row["c"] for row in rows]

    return computed
