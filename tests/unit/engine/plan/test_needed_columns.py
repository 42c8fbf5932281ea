"""The columns that a flow needs of its sources."""

from __future__ import annotations

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.needed import Needed

PRICE = ef.col("price")


def needed(build, **options):
    """Return the columns that the flow needs of its source, None for all."""
    flow = ef.Dataflow("f")
    streams = build(flow.read(ef.read_csv("bids.csv", name="bids", **options)))
    for number, stream in enumerate(streams if isinstance(streams, tuple) else (streams,)):
        stream.write(ef.to_list([], name=f"rows-{number}"))
    return flow.plan().sources["bids"].needed


def names(*columns, coded=()):
    return Needed(frozenset(columns), coded=frozenset(coded))


class Total(ef.Aggregate):
    def create(self):
        return 0

    def add(self, accumulator, row):
        return accumulator + row["price"]

    def merge(self, a, b):
        return a + b

    def finish(self, accumulator):
        return accumulator


KNOWN = {
    "select": (lambda s: s.select("auction", "price"), names("auction", "price")),
    "select, and select of fewer": (lambda s: s.select("auction", "price").select("price"), names("auction", "price")),
    "expression": (lambda s: s.filter(PRICE > 5).select("auction"), names("auction", "price")),
    "several expressions": (
        lambda s: s.filter(ef.col("channel").str.lower().is_in(["a", "price"])).filter(ef.col("least") < PRICE).select("auction"),
        names("auction", "channel", "price", "least"),
    ),
    "field of a field": (lambda s: s.filter(ef.col("who").struct.field("name") == "ann").select("auction"), names("auction", "who")),
    "computed columns": (
        lambda s: s.with_columns(price=PRICE * 2, total=PRICE * ef.col("n")).select("auction", "total"),
        names("auction", "price", "n"),
    ),
    "computed columns that are selected": (lambda s: s.select("auction", total=PRICE * ef.col("n")), names("auction", "price", "n")),
    "aggregate of expressions": (
        lambda s: s.key_by("auction").aggregate(n=ef.sum(PRICE * 2, where=ef.col("a") > 1), by=ef.max_by(ef.col("b").abs(), by="c")),
        names("auction", "price", "a", "b", "c", coded=["auction"]),
    ),
    "branches": (
        lambda s: tuple(branch.select(name) for branch, name in zip(s.branch(PRICE > 5), ("a", "b"), strict=True)),
        names("price", "a", "b"),
    ),
    "cast": (lambda s: s.cast(price="float64").select("auction"), names("auction", "price")),
    "with_time": (lambda s: s.with_time("at").select("auction"), names("auction", "at")),
    "with_arrival_time": (lambda s: s.with_arrival_time().select("auction"), names("auction")),
    "deduplicate": (lambda s: s.deduplicate("id").select("auction"), names("auction", "id")),
    "aggregate": (
        lambda s: s.key_by("auction").aggregate(n=ef.count(where=PRICE > 5), top=ef.max("bid", where="open"), by=ef.max_by("a", by="b")),
        names("auction", "price", "bid", "open", "a", "b", coded=["auction"]),
    ),
    "top of named columns": (
        lambda s: s.key_by("auction").aggregate(bids=ef.top(2, by="price", columns=["bidder"])),
        names("auction", "price", "bidder", coded=["auction"]),
    ),
    "a key that is read, too": (lambda s: s.key_by("a", "b").aggregate(n=ef.count("a")), names("a", "b", coded=["b"])),
    "a key that another reads": (lambda s: (s.key_by("a").aggregate(n=ef.count()), s.select("a")), names("a")),
    "a key of two": (
        lambda s: (s.key_by("a").aggregate(n=ef.count()), s.key_by("a").aggregate(n=ef.sum("b"))),
        names("a", "b", coded=["a"]),
    ),
    "a key that is filtered by": (lambda s: s.filter(ef.col("a") != "x").key_by("a").aggregate(n=ef.count()), names("a")),
    "a key behind a filter": (lambda s: s.filter(PRICE > 5).key_by("a").aggregate(n=ef.count()), names("a", "price", coded=["a"])),
    "windows of all rows": (lambda s: s.window(ef.rows(3)).aggregate(total=ef.sum("price")), names("price")),
    "windows of rows": (lambda s: s.key_by("auction").window(ef.rows(3)).aggregate(total=ef.sum("price")), names("auction", "price")),
    "only counted": (lambda s: s.window(ef.rows(3)).aggregate(n=ef.count()), names()),
    "stateful_map_columns": (
        lambda s: s.key_by("id").stateful_map_columns(lambda state, rows: (state, None), state={"n": "int64"}, columns=["price"]),
        names("id", "price"),
    ),
    "keyed rows": (lambda s: s.key_by("id").filter(PRICE > 5).select("id", "a").aggregate(n=ef.count()), names("id", "price", "a")),
    "two readers": (lambda s: (s.select("a"), s.key_by("b").aggregate(n=ef.count())), names("a", "b", coded=["b"])),
    "rename": (lambda s: s.rename(a="b").select("b", "c"), Needed(frozenset({"a", "c"}), frozenset({"b"}))),
    "swapped names": (lambda s: s.rename(a="b", b="a").select("a"), Needed(frozenset({"a", "b"}), frozenset({"a", "b"}))),
    "drop": (lambda s: s.drop("a").select("b"), names("a", "b")),
}


@pytest.mark.parametrize(("build", "expected"), KNOWN.values(), ids=list(KNOWN))
def test_columns_that_the_operators_name_are_needed(build, expected):
    assert needed(build) == expected


UNKNOWN = {
    "sink": lambda s: s,
    "a sink and a select": lambda s: (s, s.select("a")),
    "filter": lambda s: s.filter(PRICE > 5),
    "drop": lambda s: s.drop("a"),
    "rename": lambda s: s.rename(a="b"),
    "map": lambda s: s.map(lambda row: row).select("a"),
    "flat_map": lambda s: s.flat_map(lambda row: [row]).select("a"),
    "map_batches": lambda s: s.map_batches(lambda rows: rows).select("a"),
    "function of filter": lambda s: s.filter(lambda row: True).select("a"),
    "function of with_time": lambda s: s.with_time(lambda row: 5).select("a"),
    "function of key_by": lambda s: s.key_by(lambda row: 5).aggregate(n=ef.count()),
    "stateful_map": lambda s: s.key_by("a").stateful_map(lambda state, row: (state, row)).select("a"),
    "own aggregate": lambda s: s.key_by("a").aggregate(n=ef.count(), total=Total()),
    "top of all columns": lambda s: s.key_by("a").aggregate(bids=ef.top(2, by="price")),
    "rows in windows": lambda s: s.key_by("a").window(ef.rows(3)).aggregate(bids=ef.top(2, by="price", columns=["a"]), t=Total()),
    "join": lambda s: s.key_by("a").join(s.key_by("a"), ef.always()).select("a"),
    "union": lambda s: s.union(s).select("a"),
    "explode": lambda s: s.explode("a").select("b"),
    "lookup": lambda s: s.lookup(pa.table({"k": [1], "v": [2]}), on={"a": "k"}).select("a"),
    "a column that was dropped": lambda s: s.drop("a").select("a"),
    "a column that was renamed": lambda s: s.rename(a="b").select("a"),
}


@pytest.mark.parametrize("build", UNKNOWN.values(), ids=list(UNKNOWN))
def test_an_operator_that_may_read_any_column_needs_all(build):
    assert needed(build) is None


def test_dead_letters_hold_all_columns():
    def refused(stream):
        kept = stream.filter(PRICE > 5, on_error="dead_letter")
        return kept.select("a"), kept.dead_letters

    assert needed(refused) is None
    assert needed(lambda stream: stream.filter(PRICE > 5, on_error="skip").select("a")) == names("a", "price")


def test_dead_letters_of_an_operator_that_names_its_columns_hold_all():
    def refused(stream):
        keyed = stream.key_by("id")
        function = lambda state, rows: (state, None)  # noqa: E731 -- a name would say no more
        found = keyed.stateful_map_columns(function, state={"n": "int64"}, columns=["price"], on_error="dead_letter")
        return found, found.dead_letters

    assert needed(refused) is None


def test_late_records_hold_all_columns():
    def late(stream):
        counts = stream.key_by("a").window(ef.tumbling("1s")).aggregate(n=ef.count())
        return counts, counts.late

    assert needed(late, event_time="at") is None
    assert needed(lambda stream: late(stream)[0], event_time="at") == names("a", "at", coded=["a"])


def test_the_flow_and_its_source_stay_as_they_were():
    source = ef.read_csv("bids.csv", name="bids")
    flow = ef.Dataflow("f")
    flow.read(source).select("a").write(ef.to_list([]))
    assert flow.plan().sources["bids"].needed == names("a")
    assert source.needed is None
    assert flow.graph.nodes[0].operator is source


def test_explain_shows_the_columns_that_are_read():
    flow = ef.Dataflow("f")
    bids = flow.read(ef.read_csv("bids.csv", name="bids", event_time="at")).filter(PRICE > 5)
    bids.key_by("auction").window(ef.tumbling("1s")).aggregate(n=ef.count()).write(ef.to_list([], name="counts"))
    flow.read(ef.read_csv("bids.csv", name="all")).write(ef.to_list([], name="rows"))
    flow.read(ef.read_parquet("bids/", name="counted")).window(ef.rows(2)).aggregate(n=ef.count()).write(ef.to_list([], name="n"))
    lines = {line.split()[0]: line for line in flow.explain().splitlines() if " source" in line}
    assert lines["bids"].endswith("append-only              reads at, auction, price")
    assert lines["all"].endswith("append-only")
    assert lines["counted"].endswith("append-only              reads one column")
