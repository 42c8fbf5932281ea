"""Queries that filter groups and other rows that are updated: what a changelog adds and takes back leaves exactly DuckDB's rows."""

from __future__ import annotations

from collections import Counter
from random import Random

import duckdb
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.testing import simulate
from evenflow.testing.actions.moving import with_moves

GROUPS = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM t GROUP BY k"
NEWEST = "SELECT k, w, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY w ORDER BY seq DESC) AS r FROM t) WHERE r = 1"
QUERIES = {
    "having": f"{GROUPS} HAVING SUM(v) BETWEEN 3 AND 12",
    "having of another aggregate": f"{GROUPS} HAVING MAX(v) < 5 AND COUNT(*) > 2",
    "groups of groups": f"SELECT n, COUNT(*) AS groups FROM ({GROUPS} HAVING SUM(v) > 2) GROUP BY n HAVING COUNT(*) < 4",
    "a filter of groups": f"SELECT total, k FROM ({GROUPS}) WHERE total > 4 AND k <> 'a'",
    "a filter of the newest rows": f"SELECT k, COUNT(*) AS n FROM ({NEWEST}) WHERE v > 2 GROUP BY k",
}


def rows(seed):
    chance = Random(seed)
    return [{"k": chance.choice("abcdef"), "w": chance.randrange(9), "v": chance.randrange(-3, 7), "seq": seq} for seq in range(80)]


def remaining(stream, seed):
    """Return the rows that are left, how often each, after all that was added and taken back."""
    stream.changelog().write(ef.to_list([]))
    left: Counter[tuple[object, ...]] = Counter()
    for row in simulate(stream.flow, seed, parallelism=2, actions=with_moves()).rows["to_list"]:
        sign = 1 if row.pop("op") == "insert" else -1
        left[tuple(row.values())] += sign
    return {row: count for row, count in left.items() if count}


@pytest.mark.few(5)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", QUERIES)
def test_rows_that_are_left_are_duckdbs(name, seed):
    given, flow = rows(seed), ef.Dataflow("updated")
    left = remaining(ef.sql(QUERIES[name], ttl="never", t=flow.read(ef.from_items(given))), seed)
    with duckdb.connect() as connection:
        connection.register("t", pa.Table.from_pylist(given))
        assert left == Counter(connection.execute(QUERIES[name]).fetchall())
