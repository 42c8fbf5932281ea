"""Programs whose flow is right or wrong as it is written: aggregates of aggregates, names that clash, frames as sources."""

from __future__ import annotations

import time
from typing import Any

import pytest

import evenflow as ef

SLEEP = time.sleep
ONE_BY_ONE = ef.JobConfig(network=ef.NetworkConfig(source_rows=1, linger=0))

SALES = [{"user": f"u{i % 3}", "city": "x" if i % 3 else "y", "cents": 1, "at": i} for i in range(12)]


@pytest.fixture(autouse=True)
def jobs_may_be_waited_for(no_waiting_and_no_cluster, monkeypatch):
    monkeypatch.setattr(time, "sleep", SLEEP)


def sales(flow: ef.Dataflow) -> ef.Stream:
    return flow.read(ef.from_items(SALES, event_time="at", unit="s"))


def rows_of(flow: ef.Dataflow, stream: ef.Stream, config: ef.JobConfig = ONE_BY_ONE) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    stream.write(ef.to_list(out))
    flow.run(runtime="local", config=config).wait("30s")
    return out


def running(stream: ef.Stream) -> ef.Stream:
    return stream.key_by("user", "city").aggregate(n=ef.sum("cents"))


OVER_UPDATES = {
    "an aggregate": lambda updates, rows: updates.key_by("city").aggregate(users=ef.count()),
    "an aggregate at the end": lambda updates, rows: updates.key_by("city").aggregate(users=ef.count(), emit="final"),
    "an aggregate behind a map": lambda updates, rows: updates.map(lambda row: row).key_by("city").aggregate(users=ef.count()),
    "an aggregate behind a filter": lambda updates, rows: updates.filter(lambda row: True).key_by("city").aggregate(users=ef.count()),
    "an aggregate behind select": lambda updates, rows: updates.select("city", "n").key_by("city").aggregate(users=ef.count()),
    "an aggregate behind a union": lambda updates, rows: rows.union(updates).key_by("city").aggregate(users=ef.count()),
    "an aggregate behind a branch": lambda updates, rows: updates.branch(lambda row: True)[1].key_by("city").aggregate(users=ef.count()),
    "an aggregate by a function": lambda updates, rows: updates.key_by(lambda row: row["city"]).aggregate(users=ef.count()),
    "the best": lambda updates, rows: updates.key_by("city").aggregate(best=ef.top(2, by="n")),
    "windows": lambda updates, rows: updates.key_by("city").window(ef.tumbling("1m")).aggregate(users=ef.count()),
    "windows without keys": lambda updates, rows: updates.window(ef.tumbling("1m")).aggregate(users=ef.count()),
    "sessions": lambda updates, rows: updates.key_by("city").window(ef.session("1m")).aggregate(users=ef.count()),
    "windows of rows": lambda updates, rows: updates.key_by("city").window(ef.rows(2)).aggregate(users=ef.count()),
    "a function of windows": lambda updates, rows: updates.key_by("city").window(ef.tumbling("1m")).process(lambda key, window, rows: []),
    "deduplicate": lambda updates, rows: updates.deduplicate("city"),
    "a join, on the left": lambda updates, rows: updates.key_by("user").join(rows.key_by("user"), ef.always()),
    "a join, on the right": lambda updates, rows: rows.key_by("user").join(updates.key_by("user"), ef.always()),
    "a join of the newest": lambda updates, rows: rows.key_by("user").join_asof(updates.key_by("user")),
    "a group of both": lambda updates, rows: rows.key_by("user").co_group(updates.key_by("user"), ef.tumbling("1m"), lambda k, w, a, b: []),
}


@pytest.mark.parametrize("build", OVER_UPDATES.values(), ids=OVER_UPDATES)
def test_what_would_count_a_key_once_for_each_update_is_refused_where_it_is_written(build):
    flow = ef.Dataflow("users")
    rows = sales(flow)
    updates = running(rows).named("sums")
    nodes = len(flow.graph.nodes)
    with pytest.raises(ef.FlowError, match=r'can\'t take a stream of updates.*`sums` emits the row of each key again.*say emit="final"'):
        build(updates, rows)
    assert all(not type(node.operator).__name__.startswith("JoinSide") for node in flow.graph.nodes.values()), nodes


def test_users_per_city_are_right_when_the_first_aggregate_says_its_rows_once():
    flow = ef.Dataflow("users")
    final = sales(flow).key_by("user", "city").aggregate(n=ef.sum("cents"), emit="final")
    cities = rows_of(flow, final.key_by("city").aggregate(users=ef.count(), sales=ef.sum("n"), emit="final"))
    assert sorted(cities, key=lambda row: row["city"]) == [{"city": "x", "users": 2, "sales": 8}, {"city": "y", "users": 1, "sales": 4}]


def test_users_per_city_are_right_when_both_aggregates_have_windows():
    flow = ef.Dataflow("users")
    minutes = sales(flow).key_by("user", "city").window(ef.tumbling("1m")).aggregate(n=ef.sum("cents"))
    cities = rows_of(flow, minutes.key_by("city").window(ef.tumbling("1m")).aggregate(users=ef.count(), sales=ef.sum("n")))
    assert sorted((row["city"], row["users"], row["sales"]) for row in cities) == [("x", 2, 8), ("y", 1, 4)]


@pytest.mark.parametrize("again", [{"emit": "update"}, {"lateness": "1m"}], ids=["early results", "corrections"])
def test_windows_that_emit_a_key_several_times_are_updates_too(again):
    flow = ef.Dataflow("users")
    minutes = sales(flow).key_by("user").window(ef.tumbling("1m")).aggregate(n=ef.sum("cents"), **again)
    with pytest.raises(
        ef.FlowError, match=r'updates of user, window_start, window_end.*say emit="final" in `aggregate`, without lateness='
    ):
        minutes.window(ef.tumbling("1m")).aggregate(users=ef.count())


def test_late_rows_of_corrected_windows_are_rows_that_count():
    flow, out = ef.Dataflow("late"), []
    rows = [{"k": 1, "at": at} for at in (0, 100, 1)]
    windows = flow.read(ef.from_items(rows, event_time="at", unit="s")).key_by("k").window(ef.tumbling("10s"))
    counts = windows.aggregate(n=ef.count(), lateness="5s")
    counts.late.key_by("k").aggregate(late=ef.count(), emit="final").write(ef.to_list(out, name="late"))
    rows_of(flow, counts)
    assert out == [{"k": 1, "late": 1}]


def test_a_stateful_map_that_keeps_each_users_last_row_counts_each_user_once():
    def latest(state, row):
        users = {**(state or {}), row["user"]: row["n"]}
        return users, {"city": row["city"], "users": len(users), "sales": sum(users.values())}

    flow = ef.Dataflow("users")
    cities = rows_of(flow, running(sales(flow)).key_by("city").stateful_map(latest))
    assert {row["city"]: (row["users"], row["sales"]) for row in cities} == {"x": (2, 8), "y": (1, 4)}


def test_a_function_may_take_updates_and_what_it_emits_are_rows():
    class Rises(ef.KeyedFunction):
        before = ef.value_state(0)

        def on_row(self, key, row, context):
            yield {"city": row["city"], "rise": row["n"] - self.before}
            self.before = row["n"]

    flow = ef.Dataflow("rises")
    rises = running(sales(flow)).key_by("user", "city").process(Rises())
    cities = rows_of(flow, rises.key_by("city").aggregate(sales=ef.sum("rise"), emit="final"))
    assert sorted(map(tuple, map(dict.values, cities))) == [("x", 8), ("y", 4)]


def test_explain_says_of_each_stream_whether_its_rows_count_or_replace_others():
    flow = ef.Dataflow("kinds")
    renamed = running(sales(flow)).rename(user="who")
    renamed.write(ef.to_list([], name="rows"))
    renamed.map(lambda row: row).write(ef.to_list([], name="mapped"))
    sales(flow).key_by("city").aggregate(n=ef.count(), emit="final").named("final").write(ef.to_list([], name="counts"))
    early = sales(flow).window(ef.tumbling("1m")).aggregate(n=ef.count(), emit="update").named("early")
    early.write(ef.to_list([], name="early_rows"))
    best = sales(flow).key_by("city").aggregate(best=ef.top(2, by="cents", columns=["user"])).named("best")
    best.explode("best", position="rank").write(ef.to_list([], name="ranks"))
    kinds = {line.split()[0]: " ".join(line.split()) for line in flow.explain().partition("Physical plan")[0].splitlines() if line}
    assert "append-only" in kinds["from_items"]
    assert "updates of user, city" in kinds["aggregate"]
    assert "updates of who, city" in kinds["rename"]
    assert "updates" in kinds["map"]
    assert "updates of" not in kinds["map"]
    assert "append-only" in kinds["final"]
    assert "updates of window_start, window_end" in kinds["early"]
    assert "updates of city, rank" in kinds["explode"]
