"""Programs whose values change their types: each gives its rows as the functions returned them, or an error that says what to do."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ROW_BY_ROW = ef.NetworkConfig(source_rows=1, linger=0)
WHOLE = ef.NetworkConfig()

CUTS = pytest.mark.parametrize("network", [ROW_BY_ROW, WHOLE], ids=["row by row", "all at once"])


def given(values: Any, **options: Any) -> Any:
    """Return a program that maps each number to the value at its index."""
    return lambda stream: stream.map(lambda row: {"v": values[row["item"]]}, **options)


def results(build: Any, source: Any, network: ef.NetworkConfig = ROW_BY_ROW, **config: Any) -> list[dict[str, Any]]:
    """Return the rows of `source` (or of its items) after the operators of `build`."""
    rows: list[dict[str, Any]] = []
    flow = ef.Dataflow("program")
    build(flow.read(source if isinstance(source, ef.Source) else ef.from_items(source))).write(ef.to_list(rows))
    flow.run(runtime="local", config=ef.JobConfig(network=network, **config)).wait(timeout=30)
    return rows


def refusal(build: Any, source: Any, network: ef.NetworkConfig = ROW_BY_ROW, kind: type[ef.EvenflowError] = ef.RecordError) -> str:
    """Return the first line of the error that ends the flow."""
    with pytest.raises(kind) as caught:
        results(build, source, network)
    return str(caught.value).splitlines()[0]


class Yielding(ef.KeyedFunction):
    """Yields what `PRICES` has for a row."""

    def on_row(self, key: Any, row: dict[str, Any], context: Any) -> Any:
        yield priced(row)


async def priced_later(row: dict[str, Any]) -> dict[str, Any]:
    return priced(row)


def priced(row: dict[str, Any]) -> dict[str, Any]:
    return {"price": 0 if row["i"] < 2 else 2.5}


def priced_by_generator(partition: int, position: int | None) -> Any:
    for i in range(position or 0, 3):
        yield priced({"i": i}), i + 1


ITEMS = [{"k": 1, "i": 0}, {"k": 1, "i": 1}, {"k": 1, "i": 2}]

FUNCTIONS = {
    "map": lambda s: s.map(priced),
    "flat_map": lambda s: s.flat_map(lambda row: [priced(row)]),
    "map_async": lambda s: s.map_async(priced_later),
    "map_batches": lambda s: s.map_batches(lambda rows: {"price": [priced(row)["price"] for row in rows.to_pylist()]}),
    "map_batches with numpy": lambda s: s.map_batches(lambda rows: {"price": np.array([priced(row)["price"] for row in rows.to_pylist()])}),
    "stateful_map": lambda s: s.key_by("k").stateful_map(lambda state, row: (1, priced(row))),
    "process": lambda s: s.key_by("k").process(Yielding()),
    "from_generator": lambda s: s,
}


@CUTS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_price_that_is_0_first_and_2_5_later_arrives_as_2_5(name: str, network: ef.NetworkConfig) -> None:
    source = ef.from_generator(priced_by_generator) if name == "from_generator" else ITEMS
    assert [row["price"] for row in results(FUNCTIONS[name], source, network)] == [0, 0, 2.5]


@CUTS
def test_windows_processed_by_a_function_may_return_ints_then_floats(network: ef.NetworkConfig) -> None:
    def mean(key: int, window: Any, rows: list[dict[str, Any]]) -> Any:
        total = sum(row["v"] for row in rows)
        yield {"mean": total // len(rows) if total % len(rows) == 0 else total / len(rows)}

    source = ef.from_items([{"k": 1, "t": 0, "v": 2}, {"k": 1, "t": 1000, "v": 2}, {"k": 1, "t": 1500, "v": 3}], event_time="t")
    assert results(lambda s: s.key_by("k").window(ef.tumbling("1s")).process(mean), source, network) == [{"mean": 2}, {"mean": 2.5}]


@CUTS
def test_discounts_that_are_ints_at_first_sum_to_the_cent(network: ef.NetworkConfig) -> None:
    def discounted(row: dict[str, Any]) -> dict[str, Any]:
        return {"k": row["i"] % 2, "discount": 0 if row["i"] < 50 else row["i"] * 0.25}

    rows = results(
        lambda s: s.map(discounted).key_by("k").aggregate(emit="final", total=ef.sum("discount"), most=ef.max("discount")),
        [{"i": i} for i in range(100)],
        network,
    )
    expected = {k: sum(i * 0.25 for i in range(50, 100) if i % 2 == k) for k in (0, 1)}
    assert {row["k"]: row["total"] for row in rows} == expected
    assert {row["k"]: row["most"] for row in rows} == {0: 24.5, 1: 24.75}


@CUTS
def test_keys_that_are_ints_and_floats_group_by_their_number(network: ef.NetworkConfig) -> None:
    keys = [5, 5.5, 5.0, 6]
    rows = results(lambda s: s.key_by(lambda row: keys[row["item"]]).aggregate(emit="final", n=ef.count()), range(4), network)
    assert sorted((row["key"], row["n"]) for row in rows) == [(5, 2), (5.5, 1), (6, 1)]


@pytest.mark.parametrize("state", ["memory", "lmdb"])
@pytest.mark.parametrize("workers", [1, 3])
def test_keys_of_several_number_types_are_one_key_in_every_state(state: str, workers: int, tmp_path: Any) -> None:
    keys = [5, Decimal("5.50"), Decimal("5.0"), 5, Decimal("5.5")]
    rows: list[dict[str, Any]] = []
    flow = ef.Dataflow("program")
    stream = flow.read(ef.from_items(range(5))).key_by(lambda row: keys[row["item"]])
    stream.stateful_map(lambda n, row: ((n or 0) + 1, {"key": row["key"], "n": (n or 0) + 1})).write(ef.to_list(rows))
    place = ef.StateConfig() if state == "memory" else ef.StateConfig("lmdb", dir=str(tmp_path))
    flow.run(runtime="local", parallelism=workers, config=ef.JobConfig(network=ROW_BY_ROW, state=place)).wait(timeout=30)
    assert sorted((row["key"], row["n"]) for row in rows) == [(5, 1), (5, 2), (5, 3), (Decimal("5.5"), 1), (Decimal("5.5"), 2)]


def test_a_key_that_is_a_number_and_then_a_text_is_refused_with_both_types() -> None:
    keys = [1, "a"]
    problem = refusal(lambda s: s.key_by(lambda row: keys[row["item"]]).aggregate(n=ef.count()), range(2))
    assert problem.startswith("operator `key_by`: column `key` is int64 in this stream, got 'a' (str)")
    assert "no type holds int64 and string; return keys of one type" in problem


@CUTS
def test_a_struct_gets_the_fields_that_later_rows_have(network: ef.NetworkConfig) -> None:
    found = [{"x": {"a": 1}}, {"x": {"a": 1.5, "b": 2}}, {"x": None}, {"x": {"b": 3}}]
    rows = results(lambda s: s.map(lambda row: found[row["item"]]), range(4), network)
    assert [{k: v for k, v in (row["x"] or {}).items() if v is not None} for row in rows] == [{"a": 1}, {"a": 1.5, "b": 2}, {}, {"b": 3}]


@CUTS
def test_an_empty_list_first_and_numbers_later(network: ef.NetworkConfig) -> None:
    lists = [[], None, [1], [2.5, None], [[]][0]]
    assert [row["v"] for row in results(given(lists), range(5), network)] == lists


@CUTS
def test_decimals_of_any_scale_arrive_as_they_are(network: ef.NetworkConfig) -> None:
    prices = [Decimal("9.99"), Decimal("368.891"), Decimal("1E+5"), Decimal("0.1234567890123456789"), Decimal(10**25), 7]
    assert [row["v"] for row in results(given(prices), range(6), network)] == prices


@pytest.fixture
def orders(tmp_path: Any) -> Any:
    """Write a Parquet file of orders, with columns of narrow types."""
    columns = {
        "price": pa.array([Decimal("9.99"), Decimal("368.89"), None], pa.decimal128(10, 2)),
        "n": pa.array([1, 2, 3], pa.int32()),
        "at": pa.array([1, 2, 3], pa.timestamp("ms", "UTC")),
        "day": pa.array([date(2026, 1, 1)] * 3),
        "tags": pa.array([[], ["a"], None], pa.large_list(pa.string())),
        "share": pa.array([0.1, 0.2, 0.3], pa.float32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "orders.parquet")
    return ef.read_parquet(tmp_path)


@CUTS
def test_columns_that_pass_through_map_keep_their_types(orders: Any, network: ef.NetworkConfig, tmp_path: Any) -> None:
    flow = ef.Dataflow("program")
    out = tmp_path / "out"
    flow.read(orders).map(lambda row: row | {"vat": 1}).flat_map(lambda row: [row]).write(ef.write_parquet(out))
    flow.run(runtime="local", config=ef.JobConfig(network=network)).wait(timeout=30)
    schema, before = pq.read_table(out).schema, pq.read_table(tmp_path / "orders.parquet").schema
    assert [field for field in schema if field.name != "vat"] == list(before)
    assert schema.field("vat").type == pa.int64()


@CUTS
def test_a_column_that_no_longer_fits_its_input_type_gets_a_wider_one(orders: Any, network: ef.NetworkConfig) -> None:
    rows = results(lambda s: s.map(lambda row: row | {"n": row["n"] * 10**9, "price": (row["price"] or Decimal(0)) / 3}), orders, network)
    assert [row["n"] for row in rows] == [10**9, 2 * 10**9, 3 * 10**9]
    assert [row["price"] for row in rows] == [Decimal("3.33"), Decimal("368.89") / 3, 0]


def test_a_date_first_and_a_datetime_later_is_refused() -> None:
    times = [date(2026, 1, 1), datetime(2026, 1, 1, 12, 30)]
    problem = refusal(lambda s: s.map(lambda row: {"t": times[row["item"]]}), range(2))
    assert problem.startswith("operator `map`: column `t` is date32[day] in this stream, got datetime.datetime(2026, 1, 1, 12, 30)")
    assert "no type holds date32[day] and timestamp[us]; return one type, or set it with schema={'t': ...}" in problem


@CUTS
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (True, 1), (1, "1"), ("a", b"a"), (1.5, Decimal("1.5")), (datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)), ([1], 1),
        ({"a": 1}, "a"), (0.5, 2**53 + 1), (date(2026, 1, 1), datetime(2026, 1, 1, 12)),
    ],
    ids=str,
)  # fmt: skip
def test_values_without_a_common_type_end_the_job(first: Any, second: Any, network: ef.NetworkConfig) -> None:
    problem = refusal(given([first, second]), range(2), network)
    assert problem.startswith("operator `map`: column `v` is ")
    assert f"got {second!r}" in problem


@pytest.mark.few(10)
@CUTS
@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("int64", 1, 1.5), ("int8", 1, 300), ("uint8", 1, -1), ("float32", 1.5, 1e300), ("float64", 1, 2**53 + 1), ("bool", True, 1),
        ("date32", date(2026, 1, 1), datetime(2026, 1, 1, 12)), ("timestamp[s]", datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 1)),
        ("timestamp[us]", datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)), ("duration[s]", timedelta(1), timedelta(0, 0, 1)),
        ("decimal128(10, 2)", Decimal("1.50"), Decimal("1.555")), ("decimal128(3, 2)", 1, 100), ("string", "a", b"a"),
        ("binary", b"a", "a"), ("struct<a: int64>", {"a": 1}, {"a": 1, "b": 2}), ("list<int64>", [1], [1.5]),
        ("map<string, int64>", {"a": 1}, {"a": 0.5}), (int, 1, 1.5), (Decimal, Decimal("0.5"), 0.5),
    ],
    ids=str,
)  # fmt: skip
def test_a_declared_type_is_a_promise_and_on_error_sees_the_row_that_breaks_it(kind: Any, good: Any, bad: Any, network: Any) -> None:
    values = [good, bad, good]
    rows = results(given(values, schema={"v": kind}, on_error="skip"), range(3), network)
    kept = [dict(row["v"]) if "map" in str(kind) else row["v"] for row in rows]
    assert kept == [good, good]
    problem = refusal(given(values, schema={"v": kind}), range(3), network)
    assert "column `v` is " in problem
    assert f"in schema, got {bad!r}" in problem


def test_a_value_that_breaks_the_schema_becomes_a_dead_letter() -> None:
    good: list[dict[str, Any]] = []
    dead: list[dict[str, Any]] = []
    flow = ef.Dataflow("program")
    stream = flow.read(ef.from_items([1, 2])).map(
        lambda row: row["item"] + 0.5 * (row["item"] - 1), schema={"item": "int64"}, on_error="dead_letter"
    )
    stream.write(ef.to_list(good))
    stream.dead_letters.write(ef.to_list(dead))
    flow.run(runtime="local").wait(timeout=30)
    assert good == [{"item": 1}]
    assert [(letter["operator"], letter["record"]) for letter in dead] == [("map", '{"item": 2}')]
    assert dead[0]["message"].startswith("column `item` is int64 in schema, got 2.5 (float)")


def test_a_generators_schema_is_checked() -> None:
    def pairs(partition: int, position: int | None) -> Any:
        yield [{"n": 1}, {"n": 2.5}], 1

    problem = refusal(lambda s: s, ef.from_generator(pairs, schema={"n": "int64"}))
    assert problem == (
        "operator `from_generator`: a row does not fit `schema`: column `n` is int64 in schema, got 2.5 (float), which would change"
    )


def test_a_generators_row_with_a_column_that_its_schema_does_not_declare_is_refused() -> None:
    def pairs(partition: int, position: int | None) -> Any:
        yield [{"n": 1}, {"n": 2, "note": "kept?"}], 1

    with pytest.raises(ef.RecordError) as refused:
        results(lambda s: s, ef.from_generator(pairs, schema={"n": "int64"}, name="named"))
    assert str(refused.value).splitlines() == [
        "operator `named`: a row has the column `note`, which `schema` doesn't declare (it has n): declare it, or yield rows without it",
        "  record: {'n': 2, 'note': 'kept?'}",
    ]


def test_a_generators_row_that_lacks_a_column_of_its_schema_has_a_null() -> None:
    def pairs(partition: int, position: int | None) -> Any:
        yield [{"n": 1}, {"n": 2, "note": "kept"}], 1

    rows = results(lambda s: s, ef.from_generator(pairs, schema={"n": "int64", "note": "string"}))
    assert rows == [{"n": 1, "note": None}, {"n": 2, "note": "kept"}]


def test_items_of_dates_and_datetimes_are_refused_when_the_flow_is_written() -> None:
    with pytest.raises(ef.RecordError, match=r"item 1, column `item`: .* is a datetime, but the values before it are date32"):
        ef.from_items([date(2026, 1, 1), datetime(2026, 1, 1, 12)])


def test_a_state_that_is_declared_int64_is_not_cut() -> None:
    def running(state: dict[str, Any], rows: Any) -> Any:
        total = rows.running_sum("v", start=state["s"])
        return {"s": rows.last(total)}, {"total": total}

    items = [{"k": 1, "v": value} for value in (0.5, 1.5)]
    problem = refusal(lambda s: s.key_by("k").stateful_map_columns(running, state={"s": "int64"}), items)
    assert "returned a state `s` of float64 whose values don't fit the declared int64" in problem
    rows = results(lambda s: s.key_by("k").stateful_map_columns(running, state={"s": "float64"}), items)
    assert [row["total"] for row in rows] == [0.5, 2.0]


def test_cast_to_a_narrow_decimal_ends_the_job_at_the_first_value_that_does_not_fit() -> None:
    rows = results(lambda s: s.cast(item="decimal128(3, 2)"), [1, -9])
    assert [row["item"] for row in rows] == [Decimal("1.00"), Decimal("-9.00")]
    assert "column `item` can't be cast from int64: Decimal value does not fit" in refusal(
        lambda s: s.cast(item="decimal128(3, 2)"), [1, 10]
    )


def test_cast_of_a_float_too_large_for_32_bits_ends_the_job() -> None:
    assert "1e+300 is too large for float" in refusal(lambda s: s.cast(item="float32"), [1.5, 1e300])


@pytest.mark.parametrize("kind", ["integer64", "decimal128(99, 2)", "list<foo>", dict, 5, "timestamp[day]"], ids=str)
def test_an_unknown_type_is_refused_with_the_names_that_there_are(kind: Any) -> None:
    with pytest.raises(ef.FlowError) as caught:
        ef.Dataflow("program").read(ef.from_items([1])).map(lambda row: row, schema={"item": kind})
    assert str(caught.value).startswith("operator `map`: column `item`: ")
    if kind != "decimal128(99, 2)":
        assert "decimal128(10, 2), list<int64>, struct<a: int64, b: string>" in str(caught.value)


@CUTS
def test_two_streams_of_ints_and_floats_unite(network: ef.NetworkConfig) -> None:
    rows: list[dict[str, Any]] = []
    flow = ef.Dataflow("program")
    ints, floats = flow.read(ef.from_items([1, 2], name="ints")), flow.read(ef.from_items([0.5], name="floats"))
    united = ints.union(floats).map(lambda row: row | {"k": 1}).key_by("k")
    united.aggregate(emit="final", total=ef.sum("item"), most=ef.max("item"), all=ef.collect("item")).write(ef.to_list(rows))
    flow.run(runtime="local", config=ef.JobConfig(network=network)).wait(timeout=30)
    assert [(row["total"], row["most"], sorted(row["all"])) for row in rows] == [(3.5, 2.0, [0.5, 1.0, 2.0])]


@CUTS
@pytest.mark.parametrize("state", ["memory", "lmdb"])
def test_a_join_keeps_rows_whose_column_changes_its_type(state: str, network: ef.NetworkConfig, tmp_path: Any) -> None:
    rows: list[dict[str, Any]] = []
    flow = ef.Dataflow("program")
    left = flow.read(ef.from_items([{"k": i % 2, "i": i} for i in range(4)], name="left"))
    right = flow.read(ef.from_items([{"k": 0, "b": "x"}, {"k": 1, "b": "y"}], name="right"))
    valued = left.map(lambda row: {"k": row["k"], "v": row["i"] if row["i"] < 2 else row["i"] + 0.5, "s": {f"f{row['i']}": row["i"]}})
    valued.key_by("k").join(right.key_by("k"), ef.always()).write(ef.to_list(rows))
    place = ef.StateConfig() if state == "memory" else ef.StateConfig("lmdb", dir=str(tmp_path))
    flow.run(runtime="local", config=ef.JobConfig(network=network, state=place)).wait(timeout=30)
    assert sorted((row["v"], row["b"]) for row in rows) == [(0, "x"), (1, "y"), (2.5, "x"), (3.5, "y")]
    assert all(
        {name: value for name, value in row["s"].items() if value is not None} == {f"f{int(row['v'])}": int(row["v"])} for row in rows
    )


def test_parquet_files_keep_one_type_and_the_error_says_how_to_give_it(tmp_path: Any) -> None:
    flow = ef.Dataflow("program")
    flow.read(ef.from_items(ITEMS)).map(priced).write(ef.write_parquet(tmp_path / "out"))
    with pytest.raises(ef.ConnectorError) as caught:
        flow.run(runtime="local", config=ef.JobConfig(network=ROW_BY_ROW)).wait(timeout=30)
    assert "column `price` changed from int64 to double; give it one type before it is written, with schema=" in str(caught.value)


def test_a_declared_float_writes_ints_and_floats_into_parquet(tmp_path: Any) -> None:
    flow = ef.Dataflow("program")
    flow.read(ef.from_items(ITEMS)).map(priced, schema={"price": float}).write(ef.write_parquet(tmp_path / "out"))
    flow.run(runtime="local", config=ef.JobConfig(network=ROW_BY_ROW)).wait(timeout=30)
    assert pq.read_table(tmp_path / "out").to_pylist() == [{"price": 0.0}, {"price": 0.0}, {"price": 2.5}]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_text_files_take_ints_and_then_floats(kind: str, tmp_path: Any) -> None:
    flow = ef.Dataflow("program")
    sink = ef.write_json(tmp_path / "out") if kind == "json" else ef.write_csv(tmp_path / "out")
    flow.read(ef.from_items(ITEMS)).map(priced).write(sink)
    flow.run(runtime="local", config=ef.JobConfig(network=ROW_BY_ROW)).wait(timeout=30)
    source = ef.read_json(tmp_path / "out") if kind == "json" else ef.read_csv(tmp_path / "out")
    assert sorted(row["price"] for row in results(lambda s: s, source)) == [0, 0, 2.5]


@CUTS
def test_a_custom_aggregate_may_finish_with_ints_and_floats(network: ef.NetworkConfig) -> None:
    class Half(ef.Aggregate):
        def create(self) -> int:
            return 0

        def add(self, accumulator: int, row: dict[str, Any]) -> int:
            return accumulator + int(row["v"])

        def merge(self, left: int, right: int) -> int:
            return left + right

        def finish(self, accumulator: int) -> float:
            return accumulator // 2 if accumulator % 2 == 0 else accumulator / 2

    items = [{"k": 1, "v": 2}, {"k": 2, "v": 3}]
    rows = results(lambda s: s.key_by("k").aggregate(emit="final", half=Half()), items, network)
    assert sorted((row["k"], row["half"]) for row in rows) == [(1, 1), (2, 1.5)]
    Half.output_type = "int64"
    assert "the result 1.5 is not int64" in refusal(lambda s: s.key_by("k").aggregate(emit="final", half=Half()), items, network)


def test_arrow_batches_that_change_their_types_widen_in_what_keeps_them() -> None:
    kinds = [pa.int32(), pa.int64(), pa.float64()]

    def typed(rows: pa.RecordBatch) -> dict[str, Any]:
        i = rows["item"][0].as_py()
        return {"k": [1], "v": pa.array([i], kinds[i])}

    rows = results(lambda s: s.map_batches(typed).key_by("k").aggregate(emit="final", all=ef.collect("v"), last=ef.last("v")), range(3))
    assert [(sorted(row["all"]), row["last"]) for row in rows] == [([0.0, 1.0, 2.0], 2.0)]
