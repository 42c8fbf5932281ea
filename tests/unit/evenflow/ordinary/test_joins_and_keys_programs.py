"""Joins and keys in programs as users write them: each with the rows that come out, or the error that says what to do."""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import evenflow as ef

SLEEP = time.sleep
ROW_BY_ROW = ef.NetworkConfig(source_rows=1, linger=0)
CUTS = pytest.mark.parametrize(("parallelism", "network"), [(1, ef.NetworkConfig()), (2, ROW_BY_ROW)], ids=["one worker", "two, row by row"])
ORDERS = [{"k": 1, "t": 1, "a": 10}, {"k": 2, "t": 2, "a": 20}, {"k": 3, "t": 3, "a": 30}]


@pytest.fixture(autouse=True)
def handle_may_wait(no_waiting_and_no_cluster, monkeypatch):
    """The handle of a local job sleeps between two looks at it."""
    monkeypatch.setattr(time, "sleep", SLEEP)


def run(build, parallelism=1, network=None):
    """The rows of a program, in no order; `build` gives its last stream."""
    flow, rows = ef.Dataflow("program"), []
    build(flow).write(ef.to_list(rows))
    flow.run(runtime="local", config=ef.JobConfig(parallelism=parallelism, network=network or ef.NetworkConfig())).wait()
    return rows


def sort(rows):
    return sorted(rows, key=repr)


def orders(flow):
    return flow.read(ef.from_items(ORDERS, event_time="t", name="orders")).key_by("k")


def no_payments(flow):
    """A stream with known columns of which no row is left."""
    payments = flow.read(ef.from_items([{"k": 1, "t": 1, "b": "x"}], event_time="t", name="payments"))
    return payments.filter(pc.field("b") == "nothing")


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
    rows = run(lambda flow: orders(flow).join(no_payments(flow).key_by("k"), ef.between(0, "1s"), how="left").select("k", "b"), parallelism, network)
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
