"""Joins and keys in programs as users write them: each with its output, or the error that says what to do."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ROW_BY_ROW = ef.NetworkConfig(source_rows=1, linger=0)
CUTS = pytest.mark.parametrize(("parallelism", "network"), [(1, ef.NetworkConfig()), (2, ROW_BY_ROW)], ids=["whole", "cut"])
ORDERS = [{"k": 1, "t": 1, "a": 10}, {"k": 2, "t": 2, "a": 20}, {"k": 3, "t": 3, "a": 30}]


def run(build, parallelism=1, network=None):
    """Return the rows of a program, in any order; `build` returns its last stream."""
    flow, rows = ef.Dataflow("program"), []
    build(flow).write(ef.to_list(rows))
    flow.run(runtime="local", config=ef.JobConfig(parallelism=parallelism, network=network or ef.NetworkConfig())).wait()
    return rows


def sort(rows):
    return sorted(rows, key=repr)


def orders(flow):
    return flow.read(ef.from_items(ORDERS, event_time="t", name="orders")).key_by("k")


def no_payments(flow):
    """Return a stream with known columns and no rows."""
    payments = flow.read(ef.from_items([{"k": 1, "t": 1, "b": "x"}], event_time="t", name="payments"))
    return payments.filter(ef.col("b") == "nothing")


ALONE = [{"k": k, "t": k, "a": 10 * k, "t_right": None, "b": None} for k in (1, 2, 3)]


@CUTS
@pytest.mark.parametrize("within", [ef.always(), ef.between("-1s", "1s")], ids=["always", "between"])
@pytest.mark.parametrize("how", ["left", "full"])
def test_orders_without_any_payment_have_nulls_in_the_payments_columns(how, within, parallelism, network):
    rows = run(lambda flow: orders(flow).join(no_payments(flow).key_by("k"), within, how=how), parallelism, network)
    assert sort(rows) == ALONE


@pytest.mark.parametrize("windows", [ef.tumbling("1s"), ef.session("1s")], ids=["tumbling", "session"])
def test_windows_without_any_payment_have_nulls_in_the_payments_columns(windows):
    rows = run(lambda flow: orders(flow).join(no_payments(flow).key_by("k"), windows, how="left").drop("window_start", "window_end"))
    assert sort(rows) == ALONE


@CUTS
def test_prices_that_never_came_are_nulls(parallelism, network):
    assert sort(run(lambda flow: orders(flow).join_asof(no_payments(flow).key_by("k")), parallelism, network)) == ALONE


def test_right_join_without_any_row_of_left_has_nulls_in_lefts_columns():
    rows = run(lambda flow: no_payments(flow).key_by("k").join(orders(flow), ef.always(), how="right", suffix="_order"))
    assert sort(rows) == [{"k": k, "t": None, "b": None, "t_order": k, "a": 10 * k} for k in (1, 2, 3)]


@CUTS
def test_select_behind_an_outer_join_finds_the_columns_of_the_side_without_rows(parallelism, network):
    rows = run(
        lambda flow: orders(flow).join(no_payments(flow).key_by("k"), ef.between(0, "1s"), how="left").select("k", "b"),
        parallelism,
        network,
    )
    assert sort(rows) == [{"k": k, "b": None} for k in (1, 2, 3)]


def test_columns_that_a_schema_declares_are_there_without_a_row():
    def program(flow):
        payments = no_payments(flow).flat_map(lambda row: [row], schema={"k": "int64", "t": "int64", "paid": "float64"})
        return orders(flow).join(payments.key_by("k"), ef.between(0, "1s"), how="left").select("k", "paid")

    assert sort(run(program)) == [{"k": k, "paid": None} for k in (1, 2, 3)]


def test_columns_of_aggregates_are_there_without_a_row():
    def program(flow):
        sums = no_payments(flow).key_by("k").window(ef.tumbling("1s")).aggregate(paid=ef.sum("t"), n=ef.count())
        return orders(flow).join(sums.key_by("k"), ef.between(0, "2s"), how="left")

    nothing = dict.fromkeys(("window_start", "window_end", "paid", "n"))
    assert sort(run(program)) == [{"k": k, "t": k, "a": 10 * k, **nothing} for k in (1, 2, 3)]


def test_columns_of_a_parquet_file_without_rows_are_there(tmp_path):
    pq.write_table(pa.table({"k": pa.array([], pa.int64()), "b": pa.array([], pa.string())}), tmp_path / "empty.parquet")
    rows = run(lambda flow: orders(flow).join(flow.read(ef.read_parquet(tmp_path)).key_by("k"), ef.always(), how="left").select("k", "b"))
    assert sort(rows) == [{"k": k, "b": None} for k in (1, 2, 3)]


@CUTS
def test_first_orders_wait_for_the_columns_of_payments_that_a_function_makes_later(parallelism, network):
    def program(flow):
        late = [{"k": 9, "t": 2_000_000 * i} for i in range(1, 60)]
        payments = flow.read(ef.from_items(late, event_time="t", name="payments")).filter(lambda row: row["t"] > 100_000_000)
        paid = payments.map(lambda row: {"k": row["k"], "t": row["t"], "b": "x"})
        return orders(flow).join(paid.key_by("k"), ef.between(0, "1s"), how="left")

    assert sort(run(program, parallelism, network)) == ALONE


def table(flow, columns, name, tmp_path, **options):
    """Read a table through a Parquet file, which keeps every type."""
    folder = tmp_path / name
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    return flow.read(ef.read_parquet(folder, **options)).named(name)


NANOSECONDS = pa.array([1, 2, 1, None], pa.timestamp("ns"))
LONG = pa.array([2**62, 2**62, -(2**62), None], pa.duration("s"))


def counts_of(rows, kind):
    """Return the counts by the key's integer; Python has no value for such keys, so a function would not see them."""
    return sorted(((row["k"], row["n"]) for row in rows), key=repr)


@CUTS
@pytest.mark.parametrize("state", ["memory", "lmdb"])
@pytest.mark.parametrize(("keys", "expected"), [
    (NANOSECONDS, [(1, 2), (2, 1), (None, 1)]), (LONG, [(-(2**62), 1), (2**62, 2), (None, 1)]),
    (pa.array([1, 1_500, 1, None], pa.duration("ns")), [(1, 2), (1500, 1), (None, 1)]),
    (pa.array([1, 1_500, 1, None], pa.time64("ns")), [(1, 2), (1500, 1), (None, 1)]),
], ids=["nanoseconds", "long durations", "durations", "times"])  # fmt: skip
def test_keys_that_python_has_no_value_for_are_counted(keys, expected, state, parallelism, network, tmp_path):
    counted = []

    def program(flow):
        counts = table(flow, {"k": keys}, "rows", tmp_path).key_by("k").aggregate(emit="final", n=ef.count())
        return counts.map_batches(lambda rows: pa.record_batch({"k": rows.column("k").view(pa.int64()), "n": rows.column("n")}))

    flow = ef.Dataflow("program")
    program(flow).write(ef.to_list(counted))
    config = ef.JobConfig(
        parallelism=parallelism, network=network, state=ef.StateConfig(state, dir=str(tmp_path) if state == "lmdb" else None)
    )
    flow.run(runtime="local", config=config).wait()
    assert counts_of(counted, keys.type) == sorted(expected, key=repr)


def test_nanoseconds_join_microseconds_where_they_are_equal(tmp_path):
    def program(flow):
        left = table(flow, {"k": pa.array([1_000, 1_001], pa.timestamp("ns")), "a": [1, 2]}, "l", tmp_path)
        right = table(flow, {"k": pa.array([1, 2**60], pa.timestamp("us")), "b": [3, 4]}, "r", tmp_path)
        return left.key_by("k").join(right.key_by("k"), ef.always(), how="left").select("a", "b")

    assert sort(run(program)) == [{"a": 1, "b": 3}, {"a": 2, "b": None}]


def test_instants_of_two_zones_are_equal(tmp_path):
    def program(flow):
        left = table(flow, {"k": pa.array([0, 5], pa.timestamp("ms", "UTC")), "a": [1, 2]}, "l", tmp_path)
        right = table(flow, {"k": pa.array([0, 7_000], pa.timestamp("us", "Europe/Berlin")), "b": [3, 4]}, "r", tmp_path)
        return left.key_by("k").join(right.key_by("k"), ef.always(), how="full").select("a", "b")

    assert sort(run(program)) == [{"a": 1, "b": 3}, {"a": 2, "b": None}, {"a": None, "b": 4}]


@pytest.mark.parametrize(("one", "other", "why"), [
    (pa.timestamp("us"), pa.timestamp("us", "UTC"), "which are never equal: convert one of them"),
    (pa.int64(), pa.uint64(), "and no type holds both: convert one of them"),
    (pa.int64(), pa.string(), "which are never equal: convert one of them"),
], ids=["zones", "unsigned", "text"])  # fmt: skip
def test_keys_that_cannot_be_compared_are_refused_before_the_job_runs(one, other, why, tmp_path):
    def program(flow):
        left = table(flow, {"k": pa.nulls(1, one)}, "l", tmp_path)
        right = table(flow, {"id": pa.nulls(1, other)}, "r", tmp_path)
        return left.key_by("k").join(right.key_by("id"), ef.always())

    with pytest.raises(ef.FlowError) as refused:
        run(program)
    assert f"operator `join`: left's key column `k` is {one} and right's `id` is {other}, {why}" in str(refused.value)


def test_keys_of_functions_that_cannot_be_compared_end_the_job_by_name():
    def program(flow):
        left = flow.read(ef.from_items([{"k": 1}], name="l")).map_batches(
            lambda rows: rows.set_column(0, "k", rows.column(0).cast("uint64"))
        )
        return left.key_by("k").join(flow.read(ef.from_items([{"k": 1}], name="r")).key_by("k"), ef.always())

    with pytest.raises(
        ef.RecordError, match="operator `join`: left's key column `k` is uint64 and right's `k` is int64, and no type holds both"
    ):
        run(program)


INTEGER, FLOAT, LARGE = pa.array([5], pa.int64()), pa.array([5.0]), pa.array([2**63 + 5], pa.uint64())
IN_TURN = {
    "integers and floats": (INTEGER, FLOAT, None),
    "numbers without a type for both": (
        INTEGER,
        LARGE,
        r"9223372036854775813 \(uint64\) can't be represented exactly as double: give it one type",
    ),
    "units": (pa.array([5_000], pa.timestamp("ns")), pa.array([5], pa.timestamp("us")), None),
    "units without room": (
        pa.array([2**60], pa.timestamp("s")),
        pa.array([5], pa.timestamp("us")),
        "can't be represented exactly as timestamp",
    ),
    "zones": (
        pa.array([5], pa.timestamp("us")),
        pa.array([5], pa.timestamp("us", "UTC")),
        "of the types .*: give it one type",
    ),
    "times and numbers": (pa.array([5], pa.timestamp("us")), INTEGER, "of the types .*: give it one type"),
    "booleans and numbers": (pa.array([True]), INTEGER, "of the types .*: give it one type"),
    "dates": (pa.array([5], pa.date32()), pa.array([5 * 86_400_000], pa.date64()), None),
}


@pytest.mark.parametrize("swapped", [False, True], ids=["", "swapped"])
@pytest.mark.parametrize(("one", "other", "problem"), IN_TURN.values(), ids=IN_TURN)
def test_keys_of_one_side_of_two_types_in_turn_are_one_column_or_named(one, other, problem, swapped):
    keys = [other, one] if swapped else [one, other]

    def program(flow):
        left = flow.read(ef.from_items([{"i": 0, "t": 1}, {"i": 1, "t": 2}], event_time="t", name="l"))
        left = left.map_batches(lambda rows: pa.record_batch({"k": keys[rows.column("i")[0].as_py()], "t": rows.column("t")}))
        nothing = no_payments(flow).map(lambda row: row).key_by("k")
        return left.key_by("k").co_group(nothing, ef.session("1s"), lambda _key, _window, mine, _theirs: [{"n": len(list(mine))}])

    if problem is None:
        assert run(program, network=ROW_BY_ROW) == [{"n": 2}]
    else:
        with pytest.raises(ef.RecordError, match=f"operator `co_group`: .*column `k`.* {problem}"):
            run(program, network=ROW_BY_ROW)


def test_full_join_of_keys_of_two_widths_has_keys_of_both(tmp_path):
    def program(flow):
        left = table(flow, {"k": pa.array([1], pa.int32()), "a": [1]}, "l", tmp_path)
        return left.key_by("k").join(table(flow, {"k": [1, 2**40], "b": [1, 2]}, "r", tmp_path).key_by("k"), ef.always(), how="full")

    assert sort(run(program)) == [{"k": 1, "a": 1, "b": 1}, {"k": 2**40, "a": None, "b": 2}]


NAN = float("nan")


@CUTS
@pytest.mark.parametrize("state", ["memory", "lmdb"])
def test_nans_are_one_key(state, parallelism, network, tmp_path):
    rows = []
    flow = ef.Dataflow("program")
    read = flow.read(ef.from_items([{"k": k} for k in (NAN, -NAN, 0.0, -0.0, 1.5, None)]))
    read.key_by("k").aggregate(emit="final", n=ef.count()).write(ef.to_list(rows))
    config = ef.JobConfig(
        parallelism=parallelism, network=network, state=ef.StateConfig(state, dir=str(tmp_path) if state == "lmdb" else None)
    )
    flow.run(runtime="local", config=config).wait()
    assert sort((str(row["k"]), row["n"]) for row in rows) == [("0.0", 2), ("1.5", 1), ("None", 1), ("nan", 2)]


@CUTS
def test_nan_is_a_key_of_stateful_map_deduplicate_and_joins(parallelism, network):
    def counted(state, row):
        return (state or 0) + 1, {"k": str(row["k"]), "n": (state or 0) + 1}

    def read(flow):
        return flow.read(ef.from_items([{"k": k} for k in (NAN, -NAN, NAN, 1.0)]))

    assert max(row["n"] for row in run(lambda flow: read(flow).key_by("k").stateful_map(counted), parallelism, network)) == 3
    assert len(run(lambda flow: read(flow).deduplicate("k"), parallelism, network)) == 2
    pairs = run(
        lambda flow: read(flow).key_by("k").join(flow.read(ef.from_items([{"k": NAN, "b": 1}], name="r")).key_by("k"), ef.always()),
        parallelism,
        network,
    )
    assert [row["b"] for row in pairs] == [1, 1, 1]
    found = run(lambda flow: read(flow).lookup(pa.table({"k": [NAN], "b": [7]}), on="k"), parallelism, network)
    assert sorted(str(row["b"]) for row in found) == ["7", "7", "7", "None"]
    assert (
        run(lambda flow: read(flow).map(lambda row: {**row, "g": 1}).key_by("g").aggregate(emit="final", n=ef.count_distinct("k")))[0]["n"]
        == 2
    )


@pytest.mark.parametrize("state", ["memory", "lmdb"])
def test_a_batch_whose_keys_are_all_null_has_null_keys(state, tmp_path):
    def nulled(rows):
        return rows if rows.column("item")[0].as_py() != 2 else rows.set_column(0, "item", pa.nulls(rows.num_rows))

    rows = []
    flow = ef.Dataflow("program")
    flow.read(ef.from_items([1, 2, 3, 1])).map_batches(nulled).key_by("item").aggregate(n=ef.count()).write(ef.to_list(rows))
    config = ef.JobConfig(network=ROW_BY_ROW, state=ef.StateConfig(state, dir=str(tmp_path) if state == "lmdb" else None))
    flow.run(runtime="local", config=config).wait()
    assert sort((row["item"], row["n"]) for row in rows) == [(1, 1), (1, 2), (3, 1), (None, 1)]


@pytest.mark.parametrize("state", ["memory", "lmdb"])
@pytest.mark.parametrize("finer", [1, 2], ids=["nanoseconds first", "microseconds first"])
@pytest.mark.parametrize("emit", ["final", "update"])
def test_keys_of_two_units_in_turn_are_one_column_whichever_comes_first(finer, emit, state, tmp_path):
    def refined(rows):
        kind, by = (pa.timestamp("ns"), 1_000) if rows.column("item")[0].as_py() == finer else (pa.timestamp("us"), 1)
        return pa.record_batch({"k": pa.array([by * 5, by * 6], pa.int64()).view(kind)})

    rows = []
    flow = ef.Dataflow("program")
    counts = flow.read(ef.from_items([1, 2])).map_batches(refined).key_by("k").aggregate(emit=emit, n=ef.count())
    counts.map_batches(lambda rows: rows.set_column(0, "k", rows.column("k").cast(pa.timestamp("ns")).view(pa.int64()))).write(
        ef.to_list(rows)
    )
    config = ef.JobConfig(network=ROW_BY_ROW, state=ef.StateConfig(state, dir=str(tmp_path) if state == "lmdb" else None))
    flow.run(runtime="local", config=config).wait()
    assert {(row["k"], row["n"]) for row in rows if row["n"] == 2} == {(5_000, 2), (6_000, 2)}


@pytest.mark.parametrize("state", ["memory", "lmdb"])
@pytest.mark.parametrize("finer", [1, 2], ids=["nanoseconds first", "microseconds first"])
def test_a_key_that_has_no_room_in_the_finer_unit_of_others_is_named(finer, state, tmp_path):
    def refined(rows):
        kind = pa.timestamp("ns") if rows.column("item")[0].as_py() == finer else pa.timestamp("us")
        return pa.record_batch({"k": pa.array([2**60 + 1], pa.int64()).view(kind)})

    flow = ef.Dataflow("program")
    flow.read(ef.from_items([1, 2])).map_batches(refined).key_by("k").aggregate(emit="final", n=ef.count()).write(ef.to_list([]))
    config = ef.JobConfig(network=ROW_BY_ROW, state=ef.StateConfig(state, dir=str(tmp_path) if state == "lmdb" else None))
    with pytest.raises(
        ef.RecordError,
        match=r"(?s)operator `aggregate`: the key column `k` is timestamp\[ns\], which can't hold all of its keys.*give it one type",
    ):
        flow.run(runtime="local", config=config).wait()


@CUTS
@pytest.mark.parametrize("state", ["memory", "lmdb"])
def test_both_sides_of_co_process_share_the_state_of_equal_times_in_other_units(state, parallelism, network, tmp_path):
    class Counts(ef.CoKeyedFunction):
        n = ef.value_state(default=0)

        def on_left(self, key, row, context):
            self.n += 1
            yield {"n": self.n}

        on_right = on_left

    rows = []
    flow = ef.Dataflow("program")
    left = table(flow, {"k": pa.array([1_001, 2_000], pa.timestamp("ns"))}, "l", tmp_path).key_by("k")
    left.co_process(table(flow, {"k": pa.array([1, 2], pa.timestamp("us"))}, "r", tmp_path).key_by("k"), Counts()).write(ef.to_list(rows))
    lmdb = ef.StateConfig(state, dir=str(tmp_path)) if state == "lmdb" else ef.StateConfig()
    flow.run(runtime="local", config=ef.JobConfig(parallelism=parallelism, network=network, state=lmdb)).wait()
    assert sorted(row["n"] for row in rows) == [1, 1, 1, 2]


def test_a_key_that_the_type_of_both_sides_cannot_hold_is_named_where_results_need_one_column(tmp_path):
    def program(flow):
        left = table(flow, {"k": pa.array([2**60], pa.timestamp("us")), "a": [1]}, "l", tmp_path)
        right = table(flow, {"k": pa.array([1], pa.timestamp("ns")), "b": [3]}, "r", tmp_path)
        return left.key_by("k").join(right.key_by("k"), ef.always(), how="full").select("k", "a", "b")

    expected = r"operator `join`: the key column `k` of both sides: .* can't be represented exactly as timestamp\[ns\]: give both"
    with pytest.raises(ef.RecordError, match=expected):
        run(program)
