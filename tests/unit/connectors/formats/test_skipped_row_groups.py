"""Row groups and files are not read if a filter drops all their rows; the rows that are left are those of the filter alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef
from evenflow.connectors.formats import parquet
from evenflow.connectors.formats.parquet import ParquetSource

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

BEGIN = datetime(2026, 1, 1)


def made(chance, number):
    """Return a row whose values grow with its number, so that row groups differ."""
    return {
        "n": None if chance.random() < 0.1 else number + chance.randrange(10),
        "small": number % 100,
        "word": chance.choice((None, f"w{number:04}", f"w{number + 5:04}")),
        "day": date(2026, 1, 1) + timedelta(days=number // 10),
        "at": BEGIN + timedelta(seconds=number),
        "zoned": BEGIN.replace(tzinfo=UTC) + timedelta(minutes=number),
        "share": float("nan") if chance.random() < 0.1 else number / 7,
        "even": number % 50 < 25,
    }


SCHEMA = pa.schema({
    "n": pa.int64(), "small": pa.int8(), "word": pa.string(), "day": pa.date32(), "at": pa.timestamp("ms"),
    "zoned": pa.timestamp("us", "UTC"), "share": pa.float64(), "even": pa.bool_(),
})  # fmt: skip


def condition(chance):
    """Return a comparison with a value near those of the rows, or a combination of two."""
    if chance.random() < 0.3:
        left, right = condition(chance), condition(chance)
        return left & right if chance.random() < 0.7 else left | right
    number = chance.randrange(-20, 420)
    value = {
        "n": chance.choice((number, number + 0.5, None)),
        "small": chance.choice((number, number % 100)),
        "word": f"w{number:04}",
        "day": date(2026, 1, 1) + timedelta(days=number // 10),
        "at": BEGIN + timedelta(seconds=number, microseconds=chance.choice((0, 1))),
        "zoned": BEGIN.replace(tzinfo=UTC) + timedelta(minutes=number),
        "share": chance.choice((number / 7, float("nan"))),
        "even": chance.random() < 0.5,
    }
    column = chance.choice(sorted(value))
    one, other = ef.col(column), ef.lit(value[column])
    compared = chance.choice((one < other, one <= other, one > other, one >= other, one == other, one != other, other < one))
    return compared if chance.random() < 0.8 else ~compared


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_PER_SPLIT", 1)


def kept(path, predicate, **options):
    """Return the rows that a filter keeps, and the splits that were read of all."""
    seen = []

    class Watched(ParquetSource):
        def _open(self, split, batch_rows):
            seen.append(split)
            return super()._open(split, batch_rows)

    source = ef.read_parquet(path, **options)
    source.__class__ = Watched
    rows = []
    flow = ef.Dataflow("filtered")
    flow.read(source).filter(predicate).write(ef.to_list(rows))
    flow.run(runtime="local").wait("30s")
    return rows, len(seen)


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(20))
def test_rows_are_those_of_the_filter_for_random_conditions(seed, tmp_path, small_groups):
    chance = Random(seed)
    table = pa.Table.from_pylist([made(chance, number) for number in range(400)], SCHEMA)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20)
    skipped = 0
    for _ in range(8):
        predicate = condition(chance)
        rows, read = kept(tmp_path / "a.parquet", predicate)
        everything, every_row = [], ef.Dataflow("all")
        every_row.read(ef.from_items(table)).filter(predicate).write(ef.to_list(everything))
        every_row.run(runtime="local").wait("30s")
        assert repr(rows) == repr(everything), predicate
        skipped += 20 - read
    assert skipped


def test_folders_of_other_values_are_not_read(tmp_path):
    for region in ("eu", "us", "__HIVE_DEFAULT_PARTITION__"):
        folder = tmp_path / f"region={region}"
        folder.mkdir()
        pq.write_table(pa.table({"n": [1, 2, 3]}), folder / "a.parquet")
    assert kept(tmp_path, ef.col("region") == "eu") == ([{"n": n, "region": "eu"} for n in (1, 2, 3)], 1)
    assert kept(tmp_path, ef.col("region") > "zz") == ([], 0)


def test_sources_with_event_time_and_rows_that_others_read_are_read_whole(tmp_path, small_groups):
    pq.write_table(pa.table({"n": range(100), "ts": range(100)}), tmp_path / "a.parquet", row_group_size=10)
    assert kept(tmp_path, ef.col("n") < 10, event_time="ts")[1] == 10
    assert kept(tmp_path, ef.col("n") < 10)[1] == 1
    flow, few, all_rows = ef.Dataflow("two"), [], []
    stream = flow.read(ef.read_parquet(tmp_path / "a.parquet"))
    stream.filter(ef.col("n") < 10).write(ef.to_list(few))
    stream.write(ef.to_list(all_rows, name="all"))
    flow.run(runtime="local").wait("30s")
    assert (len(few), len(all_rows)) == (10, 100)


def test_explain_says_what_is_skipped(tmp_path):
    pq.write_table(pa.table({"n": range(10), "k": range(10)}), tmp_path / "a.parquet")
    flow = ef.Dataflow("explained")
    read = ef.read_parquet(tmp_path / "a.parquet")
    rows = flow.read(read).filter((ef.col("n") > 3) & ef.col("k").is_not_null())
    rows.select("n").filter(ef.col("n") < 7).write(ef.to_list([]))
    assert "skips row groups without n > 3, n < 7" in flow.explain()


def test_condition_that_may_fail_is_evaluated_for_every_row(tmp_path, small_groups):
    pq.write_table(pa.table({"n": [1, 2, 0, 4]}), tmp_path / "a.parquet", row_group_size=1)
    with pytest.raises(ef.RecordError, match="division by zero"):
        kept(tmp_path, (ef.col("n") > 3) & (1 / ef.col("n") < 2))


def test_a_checkpoint_inside_a_row_group_continues_under_a_filter_that_drops_it(tmp_path, small_groups):
    source = ef.read_parquet(tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": range(40)}), tmp_path / "a.parquet", row_group_size=10)
    source.start()
    reader = source.reader(0, 1)
    assert reader.poll(15).rows["n"].to_pylist() == list(range(10))
    assert reader.poll(5).rows["n"].to_pylist() == list(range(10, 15))
    later = ef.read_parquet(tmp_path / "a.parquet").where([(ef.col("n") > 30).tree])
    later.start()
    again = later.reader(0, 1)
    again.seek(reader.position())
    assert again.poll(100).rows["n"].to_pylist() == list(range(30, 40))
    assert again.poll(100) is None
    assert again.finished
