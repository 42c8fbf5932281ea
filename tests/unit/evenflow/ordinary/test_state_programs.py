"""Programs with state: a savepoint restored into a changed program, and state of every type that can and can't be saved."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from patience import patience

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

FIRST, ALL = 14, 30
ROWS = [
    {
        "seq": i,
        "k": "abc"[i % 3],
        "x": 10 + 7 * i % 11,
        "y": 1000 - i,
        "d": Decimal(f"{i % 5}.25"),
        "word": "xyzzy"[i % 5] * (1 + i % 2),
        "at": i * (1 if i % 7 else 2) + (40 if i > 18 else 0),
    }
    for i in range(ALL)
]
FEED: dict[str, Any] = {"until": ALL, "reached": threading.Event()}


def feed(partition, position):
    place = position or 0
    while place < ALL:
        if place < FEED["until"]:
            yield ROWS[place], place + 1
            place += 1
        else:
            FEED["reached"].set()
            yield None


class Longest(ef.Aggregate):
    output_type = "string"

    def create(self):
        return ""

    def add(self, accumulator, row):
        return max(accumulator, row["word"], key=lambda word: (len(word), word))

    def merge(self, a, b):
        return max(a, b, key=lambda word: (len(word), word))

    def finish(self, accumulator):
        return accumulator


def program(build, out) -> ef.Dataflow:
    flow = ef.Dataflow("shop")
    source = ef.from_generator(feed, event_time="at", unit="s", max_delay="1m", poll_every="5ms")
    build(flow.read(source)).write(ef.to_list(out))
    return flow


def settings(tmp_path, backend="memory") -> ef.JobConfig:
    (tmp_path / "state").mkdir(exist_ok=True)
    state = ef.StateConfig(backend, dir=str(tmp_path / "state")) if backend != "memory" else ef.StateConfig()
    checkpoint = ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval=None)
    return ef.JobConfig(network=ef.NetworkConfig(source_rows=3, linger=0), state=state, checkpoint=checkpoint)


def saved(build, tmp_path, backend="memory", path="savepoint") -> str:
    """Take a savepoint of a job that has read the first rows."""
    FEED.update(until=FIRST, reached=threading.Event())
    job = program(build, []).run(runtime="local", config=settings(tmp_path, backend))
    assert FEED["reached"].wait(patience(60))
    url = job.savepoint(tmp_path / path)
    job.cancel()
    job.wait("60s")
    FEED["until"] = ALL
    return url


def restored(build, url, tmp_path, backend="memory", **allowed) -> list[dict[str, Any]]:
    """Return the rows of a job that begins from a savepoint."""
    out: list[dict[str, Any]] = []
    program(build, out).run(runtime="local", config=settings(tmp_path, backend), from_savepoint=url, **allowed).wait("60s")
    return out


def whole(build, tmp_path) -> list[dict[str, Any]]:
    """Return the rows of a job that reads everything without a stop."""
    out: list[dict[str, Any]] = []
    program(build, out).run(runtime="local", config=settings(tmp_path)).wait("60s")
    return out


def functions(since: int | None = None) -> dict[str, ef.AggregateFunction]:
    """Return every aggregate function, over the rows from `since` on."""
    where = {} if since is None else {"where": ef.col("seq") >= since}
    return {
        "n": ef.count(**where),
        "words": ef.count("word", **where),
        "total": ef.sum("x", **where),
        "cents": ef.sum("d", **where),
        "mean": ef.mean("x", **where),
        "variance": ef.variance("x", **where),
        "stddev": ef.stddev("x", **where),
        "low": ef.min("x", **where),
        "high": ef.max("y", **where),
        "first": ef.first("word", **where),
        "last": ef.last("word", **where),
        "best": ef.max_by("word", "x", **where),
        "worst": ef.min_by("word", "x", **where),
        "top": ef.top(2, by=[("x", "descending"), ("seq", "ascending")], columns=["x", "seq"], **where),
        "distinct": ef.count_distinct("word", **where),
        "median": ef.median("x", **where),
        "quantile": ef.quantile("y", 0.25, **where),
        "all": ef.collect("seq", **where),
        "some": ef.approx_distinct("x", **where),
        "about": ef.approx_quantile("x", 0.5, **where),
    }


OF_WHOLE_ROWS = {"longest": Longest(), "rows": ef.top(1, by="y")}

KINDS = {
    "at the end": lambda aggregates: lambda rows: rows.key_by("k").aggregate(emit="final", **aggregates).named("shop"),
    "updates": lambda aggregates: lambda rows: rows.key_by("k").aggregate(**aggregates).named("shop"),
    "windows": lambda aggregates: lambda rows: rows.key_by("k").window(ef.tumbling("20s")).aggregate(**aggregates).named("shop"),
    "sliding windows": lambda aggregates: lambda rows: rows.window(ef.sliding("20s", every="10s")).aggregate(**aggregates).named("shop"),
    "sessions": lambda aggregates: lambda rows: rows.key_by("k").window(ef.session("6s")).aggregate(**aggregates).named("shop"),
    "windows of rows": lambda aggregates: lambda rows: rows.key_by("k").window(ef.rows(6, every=4)).aggregate(**aggregates).named("shop"),
}


def newest(rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """Return the last row of each key and window."""
    bounds = ("k", "window_start", "window_end", "window_end_row")
    return {tuple(row.get(name) for name in bounds): row for row in rows}


@pytest.mark.few(6)
@pytest.mark.parametrize("backend", ["memory", "lmdb"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", ["reordered", "fewer", "more", "others"])
def test_savepoint_gives_each_aggregate_its_own_state(kind, change, backend, tmp_path):
    build, pick = KINDS[kind], random.Random(f"{kind} {change}")
    old = new = list(functions())
    if change in ("fewer", "others"):
        new = pick.sample(new, 13)
    if change in ("more", "others"):
        old = pick.sample(old, 11)
    then = {**{name: functions()[name] for name in pick.sample(old, len(old))}, **OF_WHOLE_ROWS}
    now = {**{name: functions()[name] for name in pick.sample(new, len(new))}, **OF_WHOLE_ROWS}
    url = saved(build(then), tmp_path, backend)
    got = restored(
        build(now), url, tmp_path, backend, allow_lost_state=change in ("fewer", "others"), allow_new_state=change in ("more", "others")
    )
    expected = {name: (function if name in then else functions(since=FIRST)[name]) for name, function in now.items()}
    right = newest(whole(build(expected), tmp_path))
    assert got
    assert {key: right[key] for key in newest(got)} == newest(got)
    assert list(got[0])[-len(now) :] == list(now)


BASE = {"x": ef.sum("x"), "y": ef.max("y")}
CHANGED = {
    "another function": ({"x": ef.max("x"), "y": ef.max("y")}, r'aggregate `x` was sum\("x"\) and is max\("x"\)'),
    "another column": ({"x": ef.sum("y"), "y": ef.max("y")}, r'aggregate `x` was sum\("x"\) and is sum\("y"\)'),
    "exchanged": ({"x": ef.max("y"), "y": ef.sum("x")}, r'aggregate `x` was sum\("x"\) and is max\("y"\); aggregate `y` was'),
    "mean for sum": ({"x": ef.mean("x"), "y": ef.max("y")}, r'aggregate `x` was sum\("x"\) and is mean\("x"\)'),
    "a condition": ({"x": ef.sum("x", where=ef.col("x") > 3), "y": ef.max("y")}, r'aggregate `x` was sum\("x"\) and is sum\("x"\) where'),
    "new": ({**BASE, "n": ef.count()}, r"aggregate `n` \(count\(\)\) is not in the saved state: say allow_new_state=True"),
    "gone": ({"y": ef.max("y")}, r'aggregate `x` \(sum\("x"\)\) is saved.*say allow_lost_state=True'),
    "renamed": ({"sum": ef.sum("x"), "y": ef.max("y")}, r"`sum`.*allow_new_state=True.*`x`.*allow_lost_state=True"),
    "whole rows": ({**BASE, "best": ef.top(2, by="x")}, r"aggregate `best` \(top.* is new, and keeps all columns of rows"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_savepoint_is_refused_before_the_start_by_changed_aggregates(kind, tmp_path):
    url = saved(KINDS[kind](BASE), tmp_path)
    for name, (aggregates, message) in CHANGED.items():
        with pytest.raises(ef.FlowError, match=message):
            restored(KINDS[kind](aggregates), url, tmp_path)
        assert name


def test_a_sink_keeps_its_rows_when_a_savepoint_is_refused(tmp_path):
    url = saved(KINDS["updates"](BASE), tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious.parquet").write_bytes(b"rows")
    flow = ef.Dataflow("shop")
    rows = flow.read(ef.from_generator(feed, event_time="at", unit="s"))
    rows.key_by("k").aggregate(x=ef.max("x")).named("shop").write(ef.write_parquet(tmp_path / "out", overwrite=True))
    with pytest.raises(ef.FlowError, match=r"`x` was sum"):
        flow.run(runtime="local", from_savepoint=url)
    assert (tmp_path / "out" / "precious.parquet").read_bytes() == b"rows"


class Seen(ef.KeyedFunction):
    n = ef.value_state(0)

    def on_row(self, key, row, context):
        self.n += 1
        yield {"k": key, "n": self.n}


class SeenAndLast(ef.KeyedFunction):
    last = ef.value_state()
    n = ef.value_state(0)

    def on_row(self, key, row, context):
        self.n, self.last = self.n + 1, row["seq"]
        yield {"k": key, "n": self.n, "last": self.last}


class SeenAsMap(Seen):
    n = ef.map_state()


def running_columns(state, rows):
    n = rows.running_count(state["n"])
    return {name: rows.last(n) if name == "n" else column for name, column in state.items()}, {"k": rows["k"], "n": n}


OPERATORS = {
    "keys": (
        lambda rows: rows.key_by("k").deduplicate("x"),
        lambda rows: rows.key_by("word").deduplicate("x"),
        "the saved state is of columns k, x, the operator's of columns word, x",
    ),
    "times to live": (
        lambda rows: rows.deduplicate("k", ttl="1s"),
        lambda rows: rows.deduplicate("k"),
        "the saved state is of ttl 1 s, the operator's of ttl none",
    ),
    "key columns": (
        lambda rows: rows.key_by("k").aggregate(n=ef.count()),
        lambda rows: rows.key_by("k", "word").aggregate(n=ef.count()),
        "the saved state is of keys k, the operator's of keys k, word",
    ),
    "sizes of windows": (
        lambda rows: rows.key_by("k").window(ef.tumbling("1m")).aggregate(n=ef.count()),
        lambda rows: rows.key_by("k").window(ef.tumbling("2m")).aggregate(n=ef.count()),
        "the saved state is of windows tumbling 60 s, the operator's of windows tumbling 120 s",
    ),
    "lateness": (
        lambda rows: rows.key_by("k").window(ef.tumbling("1m")).aggregate(n=ef.count()),
        lambda rows: rows.key_by("k").window(ef.tumbling("1m")).aggregate(n=ef.count(), lateness="1m"),
        "the saved state is of lateness 0 s, the operator's of lateness 60 s",
    ),
    "windows and none": (
        lambda rows: rows.key_by("k").window(ef.tumbling("1m")).aggregate(n=ef.count()),
        lambda rows: rows.key_by("k").aggregate(n=ef.count()),
        "the saved state is that of aggregates in windows, the operator's that of running aggregates",
    ),
    "operators": (
        lambda rows: rows.key_by("k").stateful_map(lambda state, row: (1, row)),
        lambda rows: rows.key_by("k").process(Seen()),
        "the saved state is that of a stateful_map, the operator's that of a process",
    ),
    "kinds of states": (
        lambda rows: rows.key_by("k").process(Seen()),
        lambda rows: rows.key_by("k").process(SeenAsMap()),
        "state `n` was value and is map",
    ),
    "types of columns": (
        lambda rows: rows.key_by("k").stateful_map_columns(running_columns, state={"n": "int64"}),
        lambda rows: rows.key_by("k").stateful_map_columns(running_columns, state={"n": "float64"}),
        "the state's column `n` was i8 and is f8",
    ),
    "joins": (
        lambda rows: rows.key_by("k").join(rows.key_by("k"), ef.between(0, "1m")),
        lambda rows: rows.key_by("k").join(rows.key_by("k"), ef.between(0, "1m"), how="left"),
        "the saved state is of join inner, the operator's of join left",
    ),
    "times of joins": (
        lambda rows: rows.key_by("k").join(rows.key_by("k"), ef.between(0, "1m")),
        lambda rows: rows.key_by("k").join(rows.key_by("k"), ef.between(0, "2m")),
        "the saved state is of times between 0 s and 60 s, the operator's of times between 0 s and 120 s",
    ),
}


@pytest.mark.parametrize(("before", "after", "message"), OPERATORS.values(), ids=OPERATORS)
def test_an_operator_with_another_kind_of_state_is_refused_by_name(before, after, message, tmp_path):
    url = saved(lambda rows: before(rows).named("shop"), tmp_path)
    with pytest.raises(ef.FlowError, match=f"operator `shop`: {message}.*allow_lost_state=True"):
        restored(lambda rows: after(rows).named("shop"), url, tmp_path)


def test_a_function_gets_a_new_state_and_loses_one_if_the_program_says_so(tmp_path):
    url = saved(lambda rows: rows.key_by("k").process(Seen()).named("shop"), tmp_path)
    with pytest.raises(ef.FlowError, match=r"state `last` \(value\) is not in the saved state: say allow_new_state=True"):
        restored(lambda rows: rows.key_by("k").process(SeenAndLast()).named("shop"), url, tmp_path)
    got = restored(lambda rows: rows.key_by("k").process(SeenAndLast()).named("shop"), url, tmp_path, allow_new_state=True)
    assert {row["k"]: (row["n"], row["last"]) for row in got} == {"a": (10, 27), "b": (10, 28), "c": (10, 29)}

    url = saved(lambda rows: rows.key_by("k").process(SeenAndLast()).named("shop"), tmp_path, path="second")
    with pytest.raises(ef.FlowError, match=r"state `last` \(value\) is saved.*say allow_lost_state=True"):
        restored(lambda rows: rows.key_by("k").process(Seen()).named("shop"), url, tmp_path)
    got = restored(lambda rows: rows.key_by("k").process(Seen()).named("shop"), url, tmp_path, allow_lost_state=True)
    assert {row["k"]: row["n"] for row in got} == {"a": 10, "b": 10, "c": 10}


@pytest.mark.parametrize("backend", ["memory", "lmdb"])
def test_a_columns_function_gets_a_column_of_zeros_and_keeps_the_others(backend, tmp_path):
    def columns(*names):
        return lambda rows: rows.key_by("k").stateful_map_columns(running_columns, state=dict.fromkeys(names, "int64")).named("shop")

    url = saved(columns("gone", "n"), tmp_path, backend)
    got = restored(columns("n", "new"), url, tmp_path, backend, allow_new_state=True, allow_lost_state=True)
    assert newest(got) == {(k, None, None, None): {"k": k, "n": 10} for k in "abc"}


def test_a_job_that_began_with_new_aggregates_saves_them_and_goes_on_from_its_own_savepoint(tmp_path):
    url = saved(KINDS["at the end"](BASE), tmp_path)
    more = {"n": ef.count(), **BASE}
    FEED.update(until=FIRST + 5, reached=threading.Event())
    job = program(KINDS["at the end"](more), []).run(runtime="local", config=settings(tmp_path), from_savepoint=url, allow_new_state=True)
    assert FEED["reached"].wait(patience(60))
    url = job.savepoint(tmp_path / "second")
    job.cancel()
    job.wait("60s")
    FEED["until"] = ALL
    got = restored(KINDS["at the end"](more), url, tmp_path)
    right = whole(KINDS["at the end"]({**more, "n": ef.count(where=ef.col("seq") >= FIRST)}), tmp_path)
    assert newest(got) == newest(right)


def test_an_operator_without_state_yet_may_be_changed(tmp_path):
    FEED.update(until=0, reached=threading.Event())
    job = program(KINDS["updates"](BASE), []).run(runtime="local", config=settings(tmp_path))
    assert FEED["reached"].wait(patience(60))
    url = job.savepoint(tmp_path / "empty")
    job.cancel()
    job.wait("60s")
    FEED["until"] = ALL
    got = restored(KINDS["updates"]({"y": ef.sum("x")}), url, tmp_path)
    assert newest(got)["a", None, None, None]["y"] == sum(row["x"] for row in ROWS if row["k"] == "a")


@pytest.mark.parametrize("backend", ["memory", "lmdb"])
@pytest.mark.parametrize(
    "build",
    [
        lambda rows: rows.key_by("k").aggregate(n=ef.count()),
        lambda rows: rows.key_by("k").window(ef.session("9s")).aggregate(n=ef.count()),
        lambda rows: rows.key_by("k").stateful_map(lambda state, row: ((state or 0) + 1, row)),
        lambda rows: rows.deduplicate("k"),
        lambda rows: rows.key_by("k").join(rows.key_by("k"), ef.always()),
    ],
    ids=["aggregate", "sessions", "stateful_map", "deduplicate", "join"],
)
def test_keys_of_another_type_than_the_saved_ones_end_the_job_at_once(build, backend, tmp_path):
    url = saved(lambda rows: build(rows).named("shop"), tmp_path, backend)
    with pytest.raises(ef.RecordError, match=r"operator `shop`: the key.* is int64, and is string in the state that was restored"):
        restored(lambda rows: build(rows.map(lambda row: row | {"k": ord(row["k"])})).named("shop"), url, tmp_path, backend)


@dataclass
class Visit:
    pages: int


class Point(NamedTuple):
    x: int


def kept(value):
    """Return a program that keeps `value` for each key, and emits the type of the state that it reads."""
    return lambda rows: (
        rows.key_by("k").stateful_map(lambda state, row: (value, {"k": row["k"], "type": type(state).__name__})).named("shop")
    )


FOREIGN = {
    "dataclass": (Visit(1), r"`state` is a Visit: store dataclasses.asdict"),
    "named tuple": (Point(1), r"`state` is a Point: store tuple"),
    "defaultdict": (defaultdict(int), r"`state` is a defaultdict: store dict"),
    "deep": ({"seen": [1, Visit(1)]}, r"`state\['seen'\]\[1\]` is a Visit"),
    "bytearray": ([bytearray(1)], r"`state\[0\]` is a bytearray: store bytes"),
    "array": (np.zeros(1), r"`state` is a ndarray: store .tolist"),
}


@pytest.mark.parametrize("saves", [True, False], ids=["with checkpoints", "without"])
@pytest.mark.parametrize(("value", "problem"), FOREIGN.values(), ids=FOREIGN)
def test_state_that_can_not_be_saved_ends_the_job_at_its_first_row(value, problem, saves, tmp_path):
    config = settings(tmp_path) if saves else ef.JobConfig(network=ef.NetworkConfig(source_rows=3, linger=0))
    out: list[dict[str, Any]] = []
    with pytest.raises(
        ef.RecordError, match=rf"(?s)operator `shop`: .*: the state can't be saved: {problem}.*key: 'a'.*record: .*'seq': 0"
    ):
        program(kept(value), out).run(runtime="local", config=config).wait("60s")
    assert not out


class Twice(ef.KeyedFunction):
    """Sets the timer of a time in both ways."""

    def on_row(self, key, row, context):
        if context.timer("1.5s") != context.timer(context.time + timedelta(seconds=1.5)):
            raise AssertionError("two times")

    def on_timer(self, key, time, context):
        yield {"k": key, "at": f"{time:%H:%M:%S.%f}"}


def test_timer_of_a_duration_counts_from_the_event_time_and_returns_its_time():
    flow, rows = ef.Dataflow("twice"), []
    flow.read(ef.from_items([{"k": 1, "at": 10}], event_time="at", unit="s")).key_by("k").process(Twice()).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert rows == [{"k": 1, "at": "00:00:11.500000"}]


class Keeps(ef.KeyedFunction):
    value = ef.value_state()
    items = ef.list_state()
    names = ef.map_state()

    def __init__(self, where, at_timer=False):
        self.where, self.at_timer = where, at_timer

    def keep(self):
        if self.where == "value":
            self.value = {"x": Visit(1)}
        elif self.where == "items":
            self.items.append(Visit(1))
        else:
            self.names["a"] = Visit(1)

    def on_row(self, key, row, context):
        if self.at_timer:
            context.timer(context.time + timedelta(seconds=1))
        else:
            self.keep()

    def on_timer(self, key, time, context):
        self.keep()


@pytest.mark.parametrize("at_timer", [False, True], ids=["at a row", "at a timer"])
@pytest.mark.parametrize(
    ("where", "path"), [("value", r"self.value\['x'\]"), ("items", r"self.items\[0\]"), ("names", r"self.names\['a'\]")]
)
def test_every_state_of_a_function_is_checked_when_it_is_written(where, path, at_timer):
    flow = program(lambda rows: rows.key_by("k").process(Keeps(where, at_timer)), [])
    with pytest.raises(ef.RecordError, match=rf"(?s)operator `process`: .*Keeps: the state can't be saved: `{path}` is a Visit.*key: '"):
        flow.run(runtime="local").wait("60s")


def test_a_row_whose_state_can_not_be_saved_is_a_dead_letter_and_the_others_count():
    def counted(state, row):
        seen = [*(state or []), bytearray(1) if row["seq"] == 6 else row["seq"]]
        return seen, {"k": row["k"], "n": len(seen)}

    flow, out, bad = ef.Dataflow("shop"), [], []
    counts = flow.read(ef.from_items(ROWS)).key_by("k").stateful_map(counted, on_error="dead_letter").write(ef.to_list(out))
    counts.dead_letters.write(ef.to_list(bad, name="bad"))
    flow.run(runtime="local").wait("60s")
    assert {row["k"]: row["n"] for row in out} == {"a": 9, "b": 10, "c": 10}
    assert [('"seq": 6' in row["record"], row["error"]) for row in bad] == [(True, "RecordError")]


STORED = [
    {1, "a", (2, None)},
    frozenset(("x",)),
    datetime(2026, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
    datetime(2026, 1, 1, 12, 0, 0, 7),
    date(1969, 12, 31),
    clock_time(23, 59, tzinfo=UTC),
    timedelta(days=-1, microseconds=1),
    Decimal("12.3400"),
    UUID("12345678123456781234567812345678"),
    b"\x00\xff",
    2**100,
    (1, [2, {"x": (3,)}]),
    np.float64(0.1),
    np.int8(-3),
    np.datetime64("2026-01-01T00:00:00", "us"),
]


@pytest.mark.parametrize("backend", ["memory", "lmdb"])
def test_states_of_every_type_come_back_as_they_were_from_a_savepoint(backend, tmp_path):
    found = []

    def remember(state, row):
        if state is not None:
            found.append(state)
        return STORED, {"k": row["k"]}

    build = lambda rows: rows.key_by("k").stateful_map(remember).named("shop")  # noqa: E731 -- it is a program like the others
    url = saved(build, tmp_path, backend)
    found.clear()
    restored(build, url, tmp_path, backend)
    assert [[type(value) for value in state] for state in found[:1]] == [[type(value) for value in STORED]]
    assert found[0] == STORED


class Patience(ef.KeyedFunction):
    """A function that answers a row when the worker's clock has advanced."""

    def on_row(self, key, row, context):
        context.timer_after("30ms")

    def on_timer(self, key, time, context):
        yield {"k": key, "waited": context.now >= time, "ended": context.ended}


def answers_to_one_row(answer):
    """Return the rows that `answer` of a stream gives, whose source has one row and ends when that is answered."""
    answered, rows = threading.Event(), []

    def one_row_until_it_is_answered(_partition, _position):
        yield {"k": "a"}, 1
        while not answered.is_set():
            yield None

    def take(row):
        rows.append(row)
        answered.set()

    flow = ef.Dataflow("quiet")
    answer(flow.read(ef.from_generator(one_row_until_it_is_answered, poll_every="5ms")).key_by("k")).write(ef.to_callback(take))
    flow.run(runtime="local").wait("60s")
    return rows


def test_timer_by_the_clock_fires_on_a_quiet_stream_without_event_time():
    assert answers_to_one_row(lambda keyed: keyed.process(Patience())) == [{"k": "a", "waited": True, "ended": False}]


def test_window_by_the_clock_closes_on_a_quiet_stream_without_event_time():
    windows = ef.tumbling("50ms", time="processing")
    (row,) = answers_to_one_row(lambda keyed: keyed.window(windows).aggregate(n=ef.count()))
    assert (row["k"], row["n"], row["window_end"] - row["window_start"]) == ("a", 1, timedelta(milliseconds=50))


def test_session_by_the_clock_ends_on_a_quiet_stream_without_event_time():
    sessions = ef.session("50ms", time="processing")
    (row,) = answers_to_one_row(lambda keyed: keyed.window(sessions).aggregate(n=ef.count()))
    assert (row["k"], row["n"], row["window_end"] - row["window_start"]) == ("a", 1, timedelta(milliseconds=50))


def test_windows_of_another_time_and_joins_by_the_clock_are_refused():
    keyed = ef.Dataflow("refused").read(ef.from_items([{"k": 1, "ts": 1}], event_time="ts")).key_by("k")
    with pytest.raises(ef.FlowError, match=r"windows of time='wall': expected \"event\" or \"processing\""):
        ef.tumbling("1s", time="wall")
    with pytest.raises(ef.FlowError, match=r"windows of time='wall': expected \"event\" or \"processing\""):
        ef.session("1s", time="wall")
    with pytest.raises(ef.FlowError, match=r"join\(...\) with windows of time=\"processing\": .* call .with_arrival_time\(\) on each"):
        keyed.join(keyed, ef.sliding("2s", every="1s", time="processing"))
    with pytest.raises(ef.FlowError, match=r"join\(...\) with windows of time=\"processing\""):
        keyed.join(keyed, ef.session("2s", time="processing"))
    with pytest.raises(ef.FlowError, match=r"co_group\(...\) with windows of time=\"processing\""):
        keyed.co_group(keyed, ef.tumbling("1s", time="processing"), lambda key, window, left, right: [])
