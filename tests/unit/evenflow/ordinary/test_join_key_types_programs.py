"""Keys of two types of one kind in every operator with two inputs: equal keys meet, whatever their layout, unit and range."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement

import pyarrow as pa
import pytest

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ROW_BY_ROW = ef.NetworkConfig(source_rows=1, linger=0)


def times(counts, kind):
    return pa.array(counts, pa.int64()).view(kind)


FAR = 16_725_225_600_000_000
"""Microseconds since the epoch of a time beyond the range of nanoseconds, in the year 2500."""

TEXTS, BYTES = ["a", "long " * 50, None], [b"a", b"long " * 50, None]
LAYOUTS = {
    "string": pa.array(TEXTS), "large_string": pa.array(TEXTS, pa.large_string()), "string_view": pa.array(TEXTS, pa.string_view()),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
}  # fmt: skip
BYTE_LAYOUTS = {
    "binary": pa.array(BYTES), "large_binary": pa.array(BYTES, pa.large_binary()), "binary_view": pa.array(BYTES, pa.binary_view()),
}  # fmt: skip
OF_LAYOUTS = {
    **{f"{one} and {other}": (LAYOUTS[one], LAYOUTS[other]) for one, other in combinations_with_replacement(LAYOUTS, 2)},
    **{f"{one} and {other}": (BYTE_LAYOUTS[one], BYTE_LAYOUTS[other]) for one, other in combinations(BYTE_LAYOUTS, 2)},
    "fixed and view": (pa.array([b"aa", b"bb", None], pa.binary(2)), pa.array([b"aa", b"bb", None], pa.binary_view())),
}  # fmt: skip
OF_TIMES = {
    "microseconds and nanoseconds": (times([1, FAR, None], pa.timestamp("us")), times([1_000, 3_000, None], pa.timestamp("ns"))),
    "zones": (times([1_000, 3_000, None], pa.timestamp("ns", "Europe/Berlin")), times([1, FAR, None], pa.timestamp("us", "UTC"))),
    "durations": (times([1, FAR, None], pa.duration("us")), times([1_000, 3_000, None], pa.duration("ns"))),
}
PAIRS = OF_LAYOUTS | OF_TIMES | {
    "times that Python can't hold": (times([2**60, 1, None], pa.timestamp("s")), times([2**60, 1_000, None], pa.timestamp("ms"))),
}  # fmt: skip


def some(column, places):
    """Return some values of a column; Arrow has no `take` for views."""
    return pa.concat_arrays([column.slice(place, 1) for place in places])


def only(*names):
    """Return a function that leaves these columns; Python has no value for some of the keys."""
    return lambda rows: rows.select(list(names))


def key_counts(one, other, *, nulls=True):
    """Return how many rows of both sides each distinct key has, sorted."""
    if not hasattr(one.type, "unit"):
        values = [*one.to_pylist(), *other.to_pylist()]
    else:
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
        values = []
        for column in (one, other):
            counts = column.view(pa.int64()).to_pylist()
            values += [None if count is None else count * 10**9 // per_second[column.type.unit] for count in counts]
    return sorted(values.count(value) for value in set(values) if nulls or value is not None)


def stream(flow, name, keys):
    rows = flow.read(ef.from_items([{"i": i, "t": 1} for i in range(len(keys))], event_time="t", name=name))
    return rows.map_batches(lambda batch: pa.record_batch({"k": some(keys, batch["i"].to_pylist()), name: batch["i"]})).key_by("k")


WITHIN = {"always": ef.always(), "between": ef.between("-1s", "1s"), "tumbling": ef.tumbling("1s"), "session": ef.session("1s")}


def run(build, network):
    rows = []
    flow = ef.Dataflow("program")
    build(flow).write(ef.to_list(rows))
    flow.run(runtime="local", config=ef.JobConfig(parallelism=2, network=network)).wait()
    return rows


@pytest.mark.few(8)
@pytest.mark.parametrize("network", [ef.NetworkConfig(), ROW_BY_ROW], ids=["whole", "cut"])
@pytest.mark.parametrize("within", WITHIN.values(), ids=WITHIN)
@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_rows_of_equal_keys_are_joined(one, other, within, network):
    def program(flow):
        return stream(flow, "l", one).join(stream(flow, "r", other), within).map_batches(only("l", "r"))

    assert len(run(program, network)) == key_counts(one, other, nulls=False).count(2)


@pytest.mark.few(6)
@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_rows_of_equal_keys_are_joined_as_of_their_time_and_looked_up(one, other):
    def as_of(flow):
        return stream(flow, "l", one).join_asof(stream(flow, "r", other)).map_batches(only("l", "r"))

    def looked_up(flow):
        return stream(flow, "l", one).lookup(pa.table({"k": other, "r": range(len(other))}), on="k").map_batches(only("l", "r"))

    count = key_counts(one, other, nulls=False).count(2)
    for program in (as_of, looked_up):
        assert sum(row["r"] is not None for row in run(program, ROW_BY_ROW)) == count


@pytest.mark.few(8)
@pytest.mark.parametrize("network", [ef.NetworkConfig(), ROW_BY_ROW], ids=["whole", "cut"])
@pytest.mark.parametrize("windows", [ef.tumbling("1s"), ef.session("1s")], ids=["tumbling", "session"])
@pytest.mark.parametrize(("one", "other"), (OF_LAYOUTS | OF_TIMES).values(), ids=OF_LAYOUTS | OF_TIMES)
def test_co_group_gets_the_rows_of_equal_keys_of_both_sides(one, other, windows, network):
    def rows_of(key, _window, left, right):
        assert all(row["k"] == key for row in (*left, *right))
        return [{"n": len(left) + len(right)}]

    def program(flow):
        return stream(flow, "l", one).co_group(stream(flow, "r", other), windows, rows_of)

    assert sorted(row["n"] for row in run(program, network)) == key_counts(one, other)


@pytest.mark.parametrize(("one", "other"), OF_LAYOUTS.values(), ids=OF_LAYOUTS)
def test_keys_of_two_types_in_turn_are_one_key_column(one, other):
    def program(flow):
        rows = flow.read(ef.from_items([{"i": i} for i in range(len(one) + len(other))]))

        def keyed(batch):
            place = batch["i"][0].as_py()
            keys = one.slice(place, 1) if place < len(one) else other.slice(place - len(one), 1)
            return pa.record_batch({"k": keys})

        return rows.map_batches(keyed).key_by("k").aggregate(emit="final", n=ef.count()).map_batches(only("n"))

    assert sorted(row["n"] for row in run(program, ROW_BY_ROW)) == key_counts(one, other)
