"""Joins, `co_group` and `co_process` that can't be: each is refused, before anything runs where that can be known, and says what to do."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef
from evenflow.engine.plan.columns import check_columns

TIMED = {"event_time": "t", "unit": "s"}


def make_folder(path):
    path.mkdir()
    return path


def read(flow=None, rows=({"k": 1, "t": 0},), **options):
    return (flow or ef.Dataflow("wrong")).read(ef.from_items(list(rows), **options))


class Pairs(ef.CoKeyedFunction):
    def on_left(self, key, row, context):
        yield row

    def on_right(self, key, row, context):
        yield row


class Alone(ef.KeyedFunction):
    def on_row(self, key, row, context):
        yield row


class Asks(Pairs):
    def on_right(self, row):
        yield row


def together(key, window, left, right):
    yield {"n": len(left) + len(right)}


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (Pairs, "co_process.*: expected an instance of a class derived from ef.CoKeyedFunction"),
        (Alone(), "expected an instance of a class derived from ef.CoKeyedFunction .it is a KeyedFunction, which has one input"),
        (Asks(), "Asks.on_right.*is called with .key, row, context."),
    ],
)
def test_co_process_without_a_function_of_two_inputs_is_refused(function, problem):
    left = read().key_by("k")
    with pytest.raises(ef.FlowError, match=problem):
        left.co_process(left, function)


@pytest.mark.parametrize(
    ("windows", "function", "problem"),
    [
        (ef.between(0, "1s"), together, r"co_group\(\.\.\., Between.*expected windows of event time: ef.tumbling"),
        (ef.rows(5), together, "expected windows of event time"),
        (ef.tumbling("1s"), lambda key, rows: rows, "co_group.*is called with .key, window, left_rows, right_rows."),
        (ef.tumbling("1s"), None, "co_group.None.: expected a function"),
    ],
)
def test_co_group_without_windows_or_a_function_of_both_sides_is_refused(windows, function, problem):
    left = read().key_by("k")
    with pytest.raises(ef.FlowError, match=problem):
        left.co_group(left, windows, function)


TWO_INPUTS = {
    "join": lambda left, right: left.join(right, ef.always()),
    "join_asof": lambda left, right: left.join_asof(right),
    "co_group": lambda left, right: left.co_group(right, ef.tumbling("1s"), together),
    "co_process": lambda left, right: left.co_process(right, Pairs()),
}


@pytest.mark.parametrize("name", TWO_INPUTS)
def test_streams_with_other_numbers_of_key_columns_are_refused(name):
    stream = read()
    with pytest.raises(ef.FlowError, match=r"1 and 2 key columns .k; k, t.: key both by the same number of columns"):
        TWO_INPUTS[name](stream.key_by("k"), stream.key_by("k", "t"))


@pytest.mark.parametrize("name", TWO_INPUTS)
def test_right_that_is_not_keyed_is_refused(name):
    stream = read()
    with pytest.raises(ef.FlowError, match=rf"^{name}\(.*expected a keyed stream, for example left.key_by"):
        TWO_INPUTS[name](stream.key_by("k"), stream)


@pytest.mark.parametrize("name", TWO_INPUTS)
def test_streams_of_two_flows_are_refused(name):
    with pytest.raises(ef.FlowError, match=f"{name} of streams of two flows, `one` and `other`: read both in one flow"):
        TWO_INPUTS[name](read(ef.Dataflow("one")).key_by("k"), read(ef.Dataflow("other")).key_by("k"))


@pytest.mark.parametrize(
    ("bounds", "problem"),
    [
        (("5m", "1m"), "between.'5m', '1m'.: the lower bound is later than the upper one"),
        (("expires", "5m"), "between.'expires'.*: the lower bound must be a duration.*a column of left can only be the upper bound"),
        ((0, None), "between.*None.: the upper bound must be a duration.*or the name of a column of left"),
        ((0, ""), "the upper bound must be a duration"),
    ],
)
def test_wrong_bounds_are_refused(bounds, problem):
    with pytest.raises(ef.FlowError, match=problem):
        ef.between(*bounds)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda left: left.join(left, ef.always(), how="outer"), "join.how='outer'.: expected one of inner, left, right, full, semi, anti"),
        (lambda left: left.join(left, "1h"), "join.*'1h'.: expected windows such as ef.tumbling"),
        (lambda left: left.join(left, ef.rows(9)), "expected windows such as ef.tumbling"),
        (lambda left: left.join(left, ef.always(), suffix=""), "join.suffix=''.: expected a text"),
        (lambda left: left.join_asof(left, how="right"), "join_asof.how='right'.: expected left or inner"),
        (lambda left: left.join_asof(left, max_age="soon"), "max_age"),
        (lambda left: left.join(left, ef.always("-1s")), "ttl"),
    ],
    ids=["how", "within", "rows", "suffix", "how_asof", "max_age", "ttl"],
)
def test_arguments_that_a_join_does_not_know_are_refused(make, problem):
    with pytest.raises(ef.FlowError, match=problem):
        make(read().key_by("k"))


@pytest.mark.parametrize(
    "make",
    [
        lambda left: left.join(left, ef.between(0, "1s")),
        lambda left: left.join(left, ef.tumbling("1s")),
        lambda left: left.join(left, ef.session("1s")),
        lambda left: left.join(left, ef.always("1s")),
        lambda left: left.join_asof(left),
        lambda left: left.co_group(left, ef.session("1s"), together),
    ],
    ids=["between", "windows", "session", "ttl", "asof", "co_group"],
)
def test_join_by_time_over_rows_without_event_time_is_refused_before_anything_runs(refused, make):
    stream = make(read().key_by("k")).named("both")
    stream.write(ef.to_list([]))
    error = refused(lambda: stream.flow.run(runtime="local"))
    assert isinstance(error, ef.FlowError)
    assert "operator `both`" in str(error)
    assert "no event time: say event_time=" in str(error)


def joined(left, right, within=None, **options):
    """Return the error of a job that joins these rows, whose columns aren't known before they arrive."""

    def build(refused):
        flow = ef.Dataflow("wrong")
        sides = [read(flow, rows, name=name, **TIMED) for rows, name in ((left, "left"), (right, "right"))]
        sides = [side.map(dict) for side in sides]
        both = sides[0].key_by("k").join(sides[1].key_by("id"), within or ef.always(), **options).named("both")
        both.write(ef.to_list([]))
        error = refused(lambda: flow.run(runtime="local").wait("60s"))
        assert "both" in str(error)
        return error

    return build


LEFT, RIGHT = [{"k": 1, "t": 0}], [{"id": 1, "t": 0}]


@pytest.mark.parametrize(
    ("left", "right", "options", "problem"),
    [
        (LEFT, [{"id": "1", "t": 0}], {}, "left's key column `k` is int64 and right's `id` is string, which are never equal: convert one"),
        (LEFT, RIGHT, {"within": ef.between(0, "end")}, "left has no column `end`, the upper bound of between(); there are: k, t"),
        ([{**LEFT[0], "end": 5}], RIGHT, {"within": ef.between(0, "end")}, "column `end`, the upper bound of between(), is int64"),
        (
            [{**LEFT[0], "end": datetime(2020, 1, 1, tzinfo=UTC)}, {**LEFT[0], "end": None}],
            RIGHT, {"within": ef.between(0, "end")}, "column `end`, the upper bound of between(), is null: filter such rows out",
        ),
        ([{**LEFT[0], "t_right": 5}], RIGHT, {}, "two columns `t_right`, one of them right's `t`: rename it, or choose another suffix="),
        ([{**LEFT[0], "window_end": 5}], RIGHT, {"within": ef.tumbling("1s")}, "two columns `window_end`: rename or drop that of the"),
    ],
    ids=["key_types", "no_bound", "bound_of_no_time", "null_bound", "clashing_names", "window_end"],
)  # fmt: skip
def test_join_of_columns_that_do_not_go_together_ends_the_job_and_says_why(refused, left, right, options, problem):
    error = joined(left, right, **options)(refused)
    assert problem in str(error)


NUMBERS, TEXTS = [{"k": 1, "t": 0}], [{"k": "1", "t": 0}]

WAYS = {
    "as it is": lambda stream: stream,
    "renamed": lambda stream: stream.rename(k="key").rename(key="k"),
    "selected": lambda stream: stream.select("t", "k"),
    "filtered": lambda stream: stream.filter(lambda row: True),
    "one of two branches": lambda stream: stream.branch(lambda row: True)[1],
    "of two streams": lambda stream: stream.union(stream),
    "with a time of its own": lambda stream: stream.with_time("t"),
    "typed by a map": lambda stream: stream.map(dict, schema={"k": "int64", "t": "int64"}),
    "with columns of a table": lambda stream: stream.lookup(pa.table({"k": [1], "name": ["one"]}), on="k"),
    "of a table": lambda stream: stream.drop("k").lookup(pa.table({"t": [0], "k": [1]}), on="t"),
    "once": lambda stream: stream.deduplicate("k"),
    "aggregated": lambda stream: stream.key_by("k").window(ef.tumbling("1s")).aggregate(n=ef.count()),
    "joined": lambda stream: stream.key_by("k").join(stream.key_by("k"), ef.always()),
}
"""Streams with a column whose type is known without running them."""


def planned(stream):
    """Return the error of planning a flow with this stream; no source is started."""
    with pytest.raises(ef.FlowError) as caught:
        check_columns(stream.flow.graph)
    return str(caught.value)


@pytest.mark.parametrize("name", TWO_INPUTS)
@pytest.mark.parametrize("way", WAYS)
def test_keys_that_are_never_equal_are_refused_before_the_job_runs(way, name):
    flow = ef.Dataflow("wrong")
    left, right = WAYS[way](read(flow, NUMBERS, **TIMED)), read(flow, TEXTS, **TIMED)
    both = TWO_INPUTS[name](left.key_by("k"), right.key_by("k")).named("both")
    expected = "operator `both`: left's key column `k` is int64 and right's `k` is string, which are never equal: convert one of them"
    assert planned(both).startswith(expected)


@pytest.mark.parametrize(
    ("source", "key"),
    [
        (ef.generate(total=1), "key"),
        (ef.nexmark("auction", events=50), "seller"),
        (ef.read_csv("nowhere/", schema={"n": "int64"}), "n"),
    ],
    ids=["generate", "nexmark", "schema"],
)
def test_types_of_sources_are_known_before_they_start(source, key):
    flow = ef.Dataflow("wrong")
    both = flow.read(source).key_by(key).join(read(flow, TEXTS).key_by("k"), ef.always()).named("both")
    assert f"operator `both`: left's key column `{key}` is int64 and right's `k` is string" in planned(both)


def test_types_of_files_are_checked_before_a_sink_empties_its_folder(refused, tmp_path):
    pq.write_table(pa.table({"k": [1]}), make_folder(tmp_path / "numbers") / "a.parquet")
    (make_folder(tmp_path / "texts") / "a.csv").write_text("k\none\n")
    earlier = make_folder(tmp_path / "out") / "earlier.parquet"
    pq.write_table(pa.table({"k": [1]}), earlier)
    flow = ef.Dataflow("wrong")
    sides = [flow.read(source).key_by("k") for source in (ef.read_parquet(tmp_path / "numbers"), ef.read_csv(tmp_path / "texts"))]
    sides[0].join(sides[1], ef.always()).named("both").write(ef.write_parquet(tmp_path / "out", overwrite=True))
    flow.plan()
    error = refused(lambda: flow.run(runtime="local"))
    assert isinstance(error, ef.FlowError)
    assert "operator `both`: left's key column `k` is int64 and right's `k` is string" in str(error)
    assert earlier.exists()


@pytest.mark.parametrize(
    ("left", "right", "options", "problem"),
    [
        (LEFT, RIGHT, {"within": ef.between(0, "end")}, "left has no column `end`, the upper bound of between(); there are: k, t"),
        ([{**LEFT[0], "end": 5}], RIGHT, {"within": ef.between(0, "end")}, "column `end`, the upper bound of between(), is int64"),
        ([{**LEFT[0], "t_right": 5}], RIGHT, {}, "two columns `t_right`, one of them right's `t`: rename it, or choose another suffix="),
        ([{**LEFT[0], "window_end": 5}], RIGHT, {"within": ef.tumbling("1s")}, "two columns `window_end`: rename or drop that of the"),
        (LEFT, [{"key": 1, "t": 0}], {}, "operator `join.right`: no key column `id`; there are: key, t"),
    ],
    ids=["no_bound", "bound_of_no_time", "clashing_names", "window_end", "no_key"],
)
def test_columns_that_do_not_go_together_are_refused_before_the_job_runs(left, right, options, problem):
    flow = ef.Dataflow("wrong")
    sides = [read(flow, rows, **TIMED) for rows in (left, right)]
    both = sides[0].key_by("k").join(sides[1].key_by("id"), **{"within": ef.always(), **options}).named("both")
    assert problem in planned(both)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"k": ["1"]}, "the stream's column `k` is int64 and the table's `k` is string, which are never equal: cast one of them"),
        ({"k": [1], "t": [5], "t_right": [6]}, "two columns would be named `t_right`: give another suffix=, or rename a column"),
        ({"id": [1]}, "no key column `id`; there are: k, t"),
    ],
    ids=["key_types", "clashing_names", "no_key"],
)
def test_table_that_does_not_go_with_the_stream_is_refused_before_the_job_runs(table, problem):
    found = read(rows=NUMBERS, **TIMED).lookup(pa.table(table), on=next(iter(table))).named("found")
    assert planned(found) == f"operator `found`: {problem}"


def test_unknown_types_are_not_refused():
    flow = ef.Dataflow("fine")
    numbers, texts = read(flow, NUMBERS, **TIMED).map(dict).key_by("k"), read(flow, TEXTS, **TIMED).key_by("k")
    numbers.join(texts, ef.between(0, "end")).write(ef.to_list([]))
    nothing = read(flow, [{"k": None, "t": 0}], **TIMED).key_by("k")
    nothing.join(texts, ef.always()).write(ef.to_list([], name="other"))
    flow.plan()
