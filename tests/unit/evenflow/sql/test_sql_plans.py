"""The operators that queries become: no join where one pass does, and no condition before a join that it belongs behind."""

from __future__ import annotations

import pytest

import evenflow as ef

ROWS = [{"k": "a", "v": 3, "l": [1], "ts": 1}, {"k": "b", "v": 3, "l": [2], "ts": 12}, {"k": None, "v": 9, "l": None, "ts": 2}]


def streams(*names):
    flow = ef.Dataflow("plan")
    return flow, {name: flow.read(ef.from_items(ROWS, event_time="ts", unit="s", name=name)) for name in names}


def plan(query: str, *names: str) -> str:
    """Return the operators of a query, without a time to live."""
    flow, given = streams(*names)
    ef.sql(query, **given).write(ef.to_list([]))
    return flow.explain().partition("Physical plan")[0]


def most(columns: str = "MAX(v) AS most", by: str = "", source: str = "t", time: str = "ts") -> str:
    window = f"TABLE(TUMBLE(TABLE {source}, DESCRIPTOR({time}), INTERVAL '10' SECOND))"
    return f"(SELECT {columns}, window_start AS s, window_end AS e FROM {window} GROUP BY {by}window_start, window_end) AS m"


def test_rows_with_the_extreme_of_their_window_are_found_without_a_join():
    for where in ("a.v = m.most", "a.v >= m.most", "m.most <= a.v", "m.most = a.v AND a.k <> 'b'"):
        found = plan(f"SELECT a.k, m.s FROM t AS a JOIN {most()} ON {where} WHERE a.ts >= m.s AND m.e > a.ts", "t")
        assert "join" not in found
        assert "explode" in found
        assert "t  " in found
        assert found.count("<- t ") == 1


def test_commas_and_the_other_order_of_the_sides_are_the_same_join():
    assert "join" not in plan(f"SELECT a.k, m.s FROM {most()}, t AS a WHERE a.v = m.most AND a.ts >= m.s AND a.ts < m.e", "t")


def test_a_group_of_rows_has_an_extreme_of_its_own():
    query = (
        f"SELECT a.v FROM t AS a JOIN {most('k, MIN(v) AS most', 'k, ')} ON a.k = m.k AND a.v <= m.most WHERE a.ts >= m.s AND a.ts < m.e"
    )
    assert "join" not in plan(query, "t")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (f"SELECT a.k FROM t AS a JOIN {most()} ON a.v = m.most WHERE a.ts >= m.s AND a.ts <= m.e", "t"),
        (f"SELECT a.k FROM t AS a JOIN {most()} ON a.v = m.most WHERE a.ts >= m.s", "t"),
        (f"SELECT a.k FROM t AS a JOIN {most(source='u')} ON a.v = m.most WHERE a.ts >= m.s AND a.ts < m.e", "tu"),
        (f"SELECT a.k FROM t AS a JOIN {most('MAX(v + 1) AS most')} ON a.v = m.most WHERE a.ts >= m.s AND a.ts < m.e", "t"),
        (f"SELECT a.k FROM t AS a JOIN {most('k, MAX(v) AS most', 'k, ')} ON a.v = m.most WHERE a.ts >= m.s AND a.ts < m.e", "t"),
        (f"SELECT a.l FROM t AS a JOIN {most()} ON a.v = m.most WHERE a.ts >= m.s AND a.ts < m.e", "t"),
        (f"SELECT a.k FROM t AS a LEFT JOIN {most()} ON a.v = m.most WHERE a.ts >= m.s AND a.ts < m.e", "t"),
        (f"SELECT a.k FROM (SELECT * FROM t WHERE v > 1) AS a JOIN {most()} ON a.v = m.most WHERE a.ts >= m.s AND a.ts < m.e", "t"),
    ],
    ids=["the end too", "no end", "other rows", "not a column", "another group", "lists", "outer", "a filter of one side"],
)
def test_any_other_condition_is_left_to_the_join(query, names):
    with pytest.raises(ef.FlowError, match="keeps its rows for ever"):
        plan(query, *names)


@pytest.mark.parametrize("condition", ["v > 1", "v > 2"])
def test_counts_are_joined_with_the_largest_of_others_as_such(condition, waiting_for_jobs):
    (flow, given), rows = streams("t"), []
    counts = f"SELECT k, COUNT(*) AS n, s, e FROM {most('k, v', 'k, v, ')} WHERE {{}} GROUP BY k, s, e"
    largest = f"SELECT MAX(n) AS x, s, e FROM ({counts.format(condition)}) GROUP BY s, e"
    query = f"SELECT c.k FROM ({counts.format('v > 1')}) AS c JOIN ({largest}) AS m"
    ef.sql(f"{query} ON c.s = m.s AND c.e = m.e AND c.n = m.x", **given).write(ef.to_list(rows))
    assert ("join" in flow.explain()) == (condition == "v > 2")
    flow.run(runtime="local").wait("60s")
    assert sorted(row["k"] or "" for row in rows) == ["", "a", "b"]


def test_a_join_within_windows_is_by_the_other_columns():
    sides = [f"(SELECT k, COUNT(*) AS n, s, e FROM {most('k, v', 'k, v, ', each)} GROUP BY k, s, e) AS {each}{each}" for each in "tu"]
    on = "tt.k = uu.k AND tt.s = uu.s AND tt.e = uu.e"
    assert "by tt.k\n" in plan(f"SELECT tt.k, tt.n, uu.n AS m FROM {sides[0]} JOIN {sides[1]} ON {on}", "t", "u")


def test_aggregates_of_windows_that_are_over_need_no_group_by_bounds(waiting_for_jobs):
    (flow, given), rows = streams("t"), []
    hop = "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '3' SECOND))"
    counts = f"SELECT k, COUNT(*) AS n, window_start AS s, window_end AS e FROM {hop} GROUP BY k, window_start, window_end"
    ef.sql(f"SELECT SUM(n) AS n, s, e FROM ({counts}) GROUP BY e, s", **given).write(ef.to_list(rows))
    flow.run(runtime="local", parallelism=2).wait("60s")
    found = sorted((row["s"].second, row["e"].second, row["n"]) for row in rows)
    assert found == [(0, 3, 2), (2, 5, 1), (10, 13, 1), (12, 15, 1)]


@pytest.mark.parametrize("side", ["RIGHT", "FULL"])
def test_where_is_checked_behind_a_later_outer_join(side, waiting_for_jobs):
    (flow, given), rows = streams("t", "u", "w"), []
    query = f"SELECT t.v, w.k FROM t JOIN u ON t.k = u.k {side} JOIN w ON t.k = w.k WHERE t.v > u.v"
    ef.sql(query, ttl="never", **given).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert rows == []
