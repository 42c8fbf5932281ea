"""Programs whose flow is right or wrong as it is written: aggregates of aggregates, names that clash, frames as sources."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ONE_BY_ONE = ef.JobConfig(network=ef.NetworkConfig(source_rows=1, linger=0))

SALES = [{"user": f"u{i % 3}", "city": "x" if i % 3 else "y", "cents": 1, "at": i} for i in range(12)]


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
    "the first": lambda updates, rows: updates.key_by("city").aggregate(first=ef.first("n")),
    "a list": lambda updates, rows: updates.key_by("city").aggregate(users=ef.count(), all=ef.collect("n")),
    "an aggregate behind map_batches": lambda updates, rows: (
        updates.map_batches(lambda batch: batch).key_by("city").aggregate(n=ef.count())
    ),
    "an aggregate behind a map that skips": lambda updates, rows: (
        updates.map(lambda row: row, on_error="skip").key_by("city").aggregate(n=ef.count())
    ),
    "an aggregate behind a union": lambda updates, rows: (
        rows.union(updates.map_batches(lambda batch: batch)).key_by("city").aggregate(users=ef.count())
    ),
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
def test_counting_a_key_once_for_each_update_is_refused_where_it_is_written(build):
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


PRICES = pa.table({"item": ["tea", "pot"], "cents": pa.array([450, 3900], pa.int32()), "at": pa.array([1, 2], pa.timestamp("ms"))})


class Streamed:
    """A frame of an unknown library."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class OneBatch:
    """A frame of one batch."""

    def __arrow_c_array__(self, requested_schema=None):
        return PRICES.to_batches()[0].__arrow_c_array__(requested_schema)


FRAMES = {
    "an Arrow table": PRICES,
    "a record batch": PRICES.to_batches()[0],
    "an Arrow table in pieces": pa.concat_tables([PRICES.slice(0, 1), PRICES.slice(1)]),
    "a pandas frame": PRICES.to_pandas(),
    "a filtered pandas frame": pd.concat([PRICES.to_pandas(), PRICES.to_pandas()]).drop_duplicates(),
    "a pandas frame with an index": PRICES.to_pandas().set_index("item"),
    "a frame of views": Streamed(PRICES.set_column(0, "item", PRICES["item"].cast(pa.string_view()))),
    "a frame of categories": Streamed(PRICES.set_column(0, "item", PRICES["item"].dictionary_encode())),
    "another library's frame": Streamed(PRICES),
    "another library's batch": OneBatch(),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_is_read_row_by_row_with_its_types(frame):
    flow, schemas = ef.Dataflow("frame"), []

    def noted(batch):
        schemas.append(batch.schema)
        return batch

    rows = rows_of(flow, flow.read(ef.from_items(frame, event_time="at")).map_batches(noted))
    assert [(row["item"], row["cents"]) for row in rows] == [("tea", 450), ("pot", 3900)]
    assert schemas[0].field("item").type in (pa.string(), pa.large_string())
    assert schemas[0].field("cents").type == pa.int32()


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_is_a_table_of_a_lookup(frame):
    flow = ef.Dataflow("frame")
    sold = flow.read(ef.from_items([{"item": "pot"}, {"item": "cup"}]))
    assert rows_of(flow, sold.lookup(frame, on="item", columns=["cents"])) == [
        {"item": "pot", "cents": 3900},
        {"item": "cup", "cents": None},
    ]


def test_a_frame_without_rows_has_its_columns():
    flow = ef.Dataflow("frame")
    empty = flow.read(ef.from_items(PRICES.slice(0, 0)))
    with pytest.raises(ef.FlowError, match="no key column `shop`; there are: item, cents, at"):
        rows_of(flow, empty.lookup(PRICES, on={"shop": "item"}))


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ({"a": 1}, r"from_items\(\{'a': 1\}\): expected a list of dicts or of values, or a pyarrow Table"),
        ("text", "expected a list of dicts or of values"),
        (b"bytes", "expected a list of dicts or of values"),
        (7, "expected a list of dicts or of values"),
        (pd.DataFrame({0: [1]}), "from_items: the DataFrame can't become an Arrow table: the name of its column 0 is no text"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "Duplicate column names|two of its columns have the name `a`"),
        (pd.DataFrame({"a": [object()]}), "the DataFrame can't become an Arrow table"),
        (pd.DataFrame({"a": [1]}, index=pd.Index([1], name="a")), "cannot insert a, already exists"),
        (pa.table({}), "the table has no columns"),
    ],
    ids=["dict", "text", "bytes", "number", "numbered columns", "names twice", "objects", "index twice", "no columns"],
)
def test_an_object_without_rows_is_refused(items, problem):
    with pytest.raises(ef.FlowError, match=problem):
        ef.from_items(items)


def test_a_pandas_series_is_a_list_of_values():
    flow = ef.Dataflow("series")
    assert rows_of(flow, flow.read(ef.from_items(pd.Series([1.5, 2.5], name="x")))) == [{"item": 1.5}, {"item": 2.5}]


def items(flow: ef.Dataflow) -> ef.Stream:
    return flow.read(ef.from_items([{"k": "a", "v": 1, "at": 0}, {"k": "a", "v": 3, "at": 70}], event_time="at", unit="s"))


def minutes(flow: ef.Dataflow) -> ef.Stream:
    return items(flow).key_by("k").window(ef.tumbling("1m")).aggregate(v=ef.sum("v"))


HOUR = ef.tumbling("1h")
CLASHES = {
    "the key is the window's bound": (
        lambda flow: minutes(flow).key_by("window_start").window(HOUR).aggregate(n=ef.count()),
        r"two columns `window_start`, the key and the window's bound: rename the key first.*\.rename\(window_start=",
    ),
    "the key is the end row": (
        lambda flow: items(flow).rename(k="window_end_row").key_by("window_end_row").window(ef.rows(2)).aggregate(n=ef.count()),
        "two columns `window_end_row`",
    ),
    "the top of windows in windows": (
        lambda flow: minutes(flow).key_by("k").window(HOUR).aggregate(best=ef.top(1, by="v")).explode("best"),
        r"explode\(`best`\): two columns would have the name `window_start`: rename or drop.*choose columns=\[...\] in ef.top",
    ),
    "a column of the top is an aggregate": (
        lambda flow: items(flow).key_by("k").aggregate(v=ef.sum("v"), best=ef.top(1, by="v", columns=["v", "at"])).explode("best"),
        "two columns would have the name `v`",
    ),
    "a column of the top is an aggregate, behind other operators": (
        lambda flow: (
            items(flow)
            .key_by("k")
            .aggregate(v=ef.sum("v"), best=ef.top(1, by="v", columns=["v"]))
            .filter(lambda row: True)
            .rename(best="found")
            .explode("found")
        ),
        "two columns would have the name `v`",
    ),
    "positions are named like a column": (
        lambda flow: items(flow).key_by("k").aggregate(best=ef.top(2, by="v", columns=["at"]), n=ef.count()).explode("best", position="n"),
        "two columns would have the name `n`",
    ),
    "an aggregate is named like the key": (
        lambda flow: items(flow).key_by("k").aggregate(k=ef.count()),
        "`k` is a column of the result",
    ),
    "an aggregate is named like a bound": (
        lambda flow: items(flow).window(HOUR).aggregate(window_end=ef.count()),
        "`window_end` is a column of the result already",
    ),
    "a new name is taken": (
        lambda flow: items(flow).rename(v="k"),
        "two columns would have the name `k`: choose another",
    ),
    "two get one name": (lambda flow: items(flow).rename(v="x", k="x"), "two columns would have the name `x`"),
    "a column is chosen twice": (lambda flow: items(flow).select("k", "k"), "two columns would have the name `k`"),
    "a column isn't there": (
        lambda flow: minutes(flow).select("k", "value"),
        "no column `value`; there are: k, window_start, window_end, v",
    ),
    "a key has a column's name": (
        lambda flow: items(flow).key_by(lambda row: 1, column="v"),
        r"already have a column `v`: name the key's column",
    ),
}


@pytest.mark.parametrize(("build", "problem"), CLASHES.values(), ids=CLASHES)
def test_columns_of_one_name_are_refused_where_the_flow_is_written(build, problem):
    with pytest.raises(ef.FlowError, match=problem):
        build(ef.Dataflow("clash"))


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        (lambda a, b: a.join(b, ef.always(), suffix="_b"), "the result would have two columns `v_b`"),
        (lambda a, b: a.join_asof(b, suffix="_b"), "the result would have two columns `v_b`"),
        (
            lambda a, b: a.lookup(pa.table({"k": ["a"], "v": [1]}), on="k", suffix="_b"),
            "two columns would be named `v_b`: give another suffix=",
        ),
    ],
    ids=["join", "join_asof", "lookup"],
)
def test_suffixes_that_give_a_name_twice_are_refused_before_the_job_runs(how, problem):
    flow = ef.Dataflow("suffixes")
    left = items(flow).map(lambda row: row | {"v_b": 1}, schema={"k": "string", "v": "int64", "at": "int64", "v_b": "int64"})
    right = items(flow).key_by("k")
    right.write(ef.to_list([], name="right"))
    how(left.key_by("k"), right).write(ef.to_list([]))
    with pytest.raises(ef.FlowError, match=problem):
        flow.explain()


def test_the_hours_best_minute_keeps_its_own_bounds_if_the_hours_are_not_selected():
    flow = ef.Dataflow("best")
    best = minutes(flow).window(HOUR).aggregate(best=ef.top(1, by="v")).select("best").explode("best")
    (row,) = rows_of(flow, best)
    assert (row["k"], row["v"], row["window_start"].minute) == ("a", 3, 1)


def test_the_hours_best_minute_has_the_hours_bounds_if_top_names_columns_without_bounds():
    flow = ef.Dataflow("best")
    best = minutes(flow).window(HOUR).aggregate(best=ef.top(1, by="v", columns=["k", "v"])).explode("best", position="rank")
    (row,) = rows_of(flow, best)
    assert (row["k"], row["v"], row["rank"], row["window_start"].minute) == ("a", 3, 1, 0)


def test_a_function_of_windows_may_have_a_bound_as_its_key():
    flow = ef.Dataflow("process")
    hours = (
        minutes(flow)
        .key_by("window_start")
        .window(HOUR)
        .process(lambda key, window, rows: [{"key": key.minute, "hour": window.start.hour}])
    )
    assert sorted(row["key"] for row in rows_of(flow, hours)) == [0, 1]


def test_a_renamed_bound_is_a_key_like_any_other():
    flow = ef.Dataflow("renamed")
    counts = minutes(flow).rename(window_start="minute").key_by("minute").window(HOUR).aggregate(n=ef.count())
    assert sorted((row["minute"].minute, row["window_start"].minute, row["n"]) for row in rows_of(flow, counts)) == [(0, 0, 1), (1, 0, 1)]
