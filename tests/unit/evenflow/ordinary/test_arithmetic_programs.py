"""Sums, quantiles, counts and times in programs as users write them: each gives what exact arithmetic gives."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ROW_BY_ROW = ef.NetworkConfig(source_rows=1, linger=0)
CUTS = pytest.mark.parametrize("config", [ef.JobConfig(), ef.JobConfig(parallelism=2, network=ROW_BY_ROW)], ids=["whole", "cut"])
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def run(build, config=None):
    """Return the rows of a program; `build` returns its last stream."""
    flow, rows = ef.Dataflow("program"), []
    build(flow).write(ef.to_list(rows))
    flow.run(runtime="local", config=config).wait()
    return rows


def aggregated(values, function, config=None):
    """Compute one aggregate of a column."""

    def program(flow):
        return flow.read(ef.from_items([{"k": 1, "x": value} for value in values])).key_by("k").aggregate(emit="final", it=function)

    return run(program, config)[0]["it"]


@CUTS
@pytest.mark.parametrize(("values", "expected"), [([-math.inf, 1.0], -math.inf), ([1.0, math.inf], math.inf), ([-1e308, 1e308], 0.0)])
def test_median_is_between_infinite_and_far_values(values, expected, config):
    assert aggregated(values, ef.median("x"), config) == expected


@CUTS
def test_the_least_float_and_one_are_two_values(config):
    assert aggregated([5e-324, 1.0, 1.0], ef.approx_distinct("x"), config) == 2


def test_long_durations_are_different_values(tmp_path):
    pq.write_table(pa.table({"k": [1] * 3, "x": pa.array([0, 2**62, -(2**62)], pa.duration("s"))}), tmp_path / "rows.parquet")
    counted = run(lambda flow: flow.read(ef.read_parquet(tmp_path)).key_by("k").aggregate(emit="final", n=ef.approx_distinct("x")))
    assert counted == [{"k": 1, "n": 3}]


@CUTS
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2**62, 2**62 + 1], 0.5),
        ([Decimal(10**20), Decimal(10**20 + 1), Decimal(10**20 + 2)], 1.0),
        ([Decimal("0.1"), Decimal("0.3")], 0.02),
    ],
    ids=["integers", "large decimals", "decimals"],
)
def test_variance_is_exact(values, expected, config):
    assert aggregated(values, ef.variance("x"), config) == expected


@CUTS
def test_sum_keeps_small_values_when_large_ones_cancel(config):
    large = 10.1**21
    assert aggregated([-large, -large, 1.0, 1.0, large, large], ef.sum("x"), config) == 2.0
    assert aggregated([-large, 1.0, 1.0, large], ef.mean("x"), config) == 0.5


@CUTS
def test_sum_of_tenths_is_rounded_once(config):
    assert aggregated([0.1] * 10, ef.sum("x"), config) == 1.0


@CUTS
@pytest.mark.parametrize(("values", "expected"), [
    ([math.inf, 1.0], "inf"), ([math.inf, -math.inf], "nan"), ([math.nan, 1.0], "nan"), ([1e308, 1e308], "inf"), ([-math.inf, 1.0], "-inf"),
])  # fmt: skip
def test_sum_of_infinities_follows_ieee(values, expected, config):
    assert str(aggregated(values, ef.sum("x"), config)) == expected


def windows_of(stream):
    """Count the rows in windows of a microsecond."""
    return stream.window(ef.tumbling("1us")).aggregate(n=ef.count())


def starts(rows):
    return sorted((row["window_start"] - EPOCH) // timedelta(microseconds=1) for row in rows)


@pytest.mark.parametrize(("kind", "unit"), [(pa.timestamp("ns"), "ms"), (pa.int64(), "ns"), (pa.timestamp("ns", "UTC"), "ms")], ids=str)
def test_times_before_1970_are_rounded_down(kind, unit, tmp_path):
    pq.write_table(pa.table({"t": pa.array([-1, -1_000, -1_001, 0, 999], kind)}), tmp_path / "rows.parquet")
    rows = run(lambda flow: windows_of(flow.read(ef.read_parquet(tmp_path, event_time="t", unit=unit))))
    assert starts(rows) == [-2, -1, 0]


@pytest.mark.parametrize(
    ("value", "unit", "start"), [(-1.0, "ns", -1), (1_999.0, "ns", 1), (1.001, "s", 1_001_000), (-1.5, "us", -2), (0.25, "ms", 250)]
)
def test_times_that_are_floats_are_rounded_down(value, unit, start):
    assert starts(run(lambda flow: windows_of(flow.read(ef.from_items([{"t": value}])).with_time("t", unit=unit)))) == [start]


@pytest.mark.parametrize("offset", ["-100ms", -0.1, timedelta(milliseconds=-100), "900ms"], ids=str)
def test_windows_have_negative_offsets(offset):
    source = ef.from_items([{"t": 0}, {"t": 899}, {"t": 900}], event_time="t")
    rows = run(lambda flow: flow.read(source).window(ef.tumbling("1s", offset=offset)).aggregate(n=ef.count()))
    assert [(start, row["n"]) for start, row in zip(starts(rows), rows, strict=True)] == [(-100_000, 2), (900_000, 1)]


def test_days_of_another_time_zone():
    source = ef.from_items([{"t": datetime(2024, 1, 1, 15, 59, tzinfo=UTC)}, {"t": datetime(2024, 1, 1, 16, tzinfo=UTC)}], event_time="t")
    rows = run(lambda flow: flow.read(source).window(ef.sliding("1d", every="12h", offset="-8h")).aggregate(n=ef.count()))
    assert [(row["window_start"].strftime("%d %H"), row["n"]) for row in rows] == [("31 16", 1), ("01 04", 2), ("01 16", 1)]


def test_offset_that_is_no_duration_is_refused():
    with pytest.raises(ef.FlowError, match="window offset '-1 fortnight' is not a duration"):
        ef.tumbling("1s", offset="-1 fortnight")


@CUTS
def test_null_keys_make_no_session_together(config):
    def side(flow, name, times):
        return flow.read(ef.from_items([{"k": None, "t": at * 1000, name: at} for at in times], event_time="t", name=name))

    def program(flow):
        left, right = side(flow, "l", [0, 8]), side(flow, "r", [4])
        return (
            left.key_by("k").join(right.drop("t").key_by("k"), ef.session("5s"), how="full").select("l", "r", "window_start", "window_end")
        )

    rows = [
        (row["l"], row["r"], (row["window_start"] - EPOCH).seconds, (row["window_end"] - EPOCH).seconds) for row in run(program, config)
    ]
    assert sorted(rows, key=repr) == [(0, None, 0, 5), (8, None, 8, 13), (None, 4, 4, 9)]


@CUTS
def test_asof_join_takes_nan_for_the_greatest(config):
    def program(flow):
        left = flow.read(ef.from_items([{"k": 1, "t": 5}], event_time="t", name="l")).key_by("k")
        prices = [{"k": 1, "t": 1, "b": price} for price in (math.nan, 1.0, None)]
        return left.join_asof(flow.read(ef.from_items(prices, event_time="t", name="r")).key_by("k")).select("b")

    assert str(run(program, config)) == "[{'b': nan}]"
