"""Partitions and rolling of file sinks: other readers find the rows that were written, and values that they would change are refused."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.connectors.files import file_sink
from evenflow.connectors.files.file_sink import FileWriter
from evenflow.engine.columns import Columns

TYPES = {
    "text": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)),
    "number": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates()),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in TYPES.items()}), max_size=12)
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in TYPES.items()])


def batch(rows: Any, schema: pa.Schema | None = None) -> ef.Batch:
    return ef.Batch(pa.RecordBatch.from_pylist(rows, schema))


def begun(sink: Any) -> Any:
    sink.start()
    return sink


def files(folder: Any) -> list[str]:
    return sorted(str(path.parent.relative_to(folder)) for path in folder.rglob("part-*"))


def read(folder: Any, schema: pa.Schema) -> list[dict[str, Any]]:
    partitioning = ds.partitioning(schema, flavor="hive")
    return list(ds.dataset(folder, partitioning=partitioning, format="parquet").to_table().to_pylist()) if files(folder) else []


@given(
    rows=ROWS, cut=st.integers(0, 12), columns=st.permutations([*TYPES]).flatmap(lambda names: st.integers(1, 4).map(lambda n: names[:n]))
)
def test_other_readers_find_each_row_with_the_values_of_its_partition(rows, cut, columns, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    schema = SCHEMA.append(pa.field("n", pa.int64()))
    rows = [{**row, "n": n} for n, row in enumerate(rows)]
    sink = begun(ef.write_parquet(folder, partition_by=columns))
    writers = [sink.writer(index, 2) for index in range(2)]
    for checkpoint, some in enumerate((rows[:cut], rows[cut:]), 1):
        for index, writer in enumerate(writers):
            writer.write(batch(some[index::2], schema))
        sink.commit(checkpoint, [part for writer in writers for part in writer.prepare(checkpoint)])
    found = read(folder, pa.schema([schema.field(name) for name in columns]))
    assert sorted(({name: row[name] for name in schema.names} for row in found), key=lambda row: row["n"]) == rows


def test_folders_are_named_as_spark_names_them(tmp_path):
    days = [date(2026, 1, 31), None]
    texts = ["a b/c:d=e%f*g?\"h'i#j{k[l]m^n\\o\x01p\x7f\u00e9", "x"]
    sink = begun(ef.write_csv(tmp_path, partition_by=("day", "text")))
    writer = sink.writer(0, 1)
    writer.write(batch([{"n": n, "day": day, "text": text} for n, (day, text) in enumerate(zip(days, texts, strict=True))]))
    assert files(tmp_path) == []
    sink.commit(1, writer.prepare(1))
    escaped = "a b%2Fc%3Ad%3De%25f%2Ag%3F%22h%27i%23j%7Bk%5Bl%5Dm%5En%5Co%01p%7F\u00e9"
    assert files(tmp_path) == ["day=2026-01-31/text=" + escaped, "day=__HIVE_DEFAULT_PARTITION__/text=x"]
    assert [path.read_text() for path in sorted(tmp_path.rglob("part-*"))] == ['"n"\n0\n', '"n"\n1\n']


def test_rows_of_a_partition_keep_their_order(tmp_path):
    sink = begun(ef.write_parquet(tmp_path, partition_by="k"))
    writer = sink.writer(0, 1)
    rows = [{"k": str(n % 3), "n": n} for n in range(30)]
    writer.write(batch(rows[:20]))
    writer.write(batch(rows[20:]))
    sink.commit(1, writer.prepare(1))
    for path in tmp_path.rglob("part-*"):
        numbers = ds.dataset(path).to_table()["n"].to_pylist()
        assert numbers == sorted(numbers)
        assert len(numbers) == 10


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "column `k` is an empty text, which readers take for null: map it to another text or to None"),
        ("__HIVE_DEFAULT_PARTITION__", "column `k` is '__HIVE_DEFAULT_PARTITION__', which readers take for null"),
        ("\u00e9" * 127, "a folder's name would have 256 bytes, and all of them 256; at most 255 and 700 are possible"),
    ],
)
def test_value_that_can_not_name_a_folder_is_refused_with_its_row(value, message, tmp_path):
    writer = begun(ef.write_json(tmp_path, partition_by="k", name="out")).writer(0, 1)
    with pytest.raises(ef.RecordError, match=rf"operator `out`: partition_by: {message}") as refused:
        writer.write(batch([{"k": "a", "n": 1}, {"k": value, "n": 2}]))
    assert refused.value.record == {"k": value, "n": 2}
    writer.close()


def test_date_that_readers_do_not_know_is_refused(tmp_path):
    writer = begun(ef.write_parquet(tmp_path, partition_by="day")).writer(0, 1)
    rows = pa.record_batch({"day": pa.array([0, 2_932_897], pa.int32()).cast(pa.date32()), "n": [1, 2]})
    with pytest.raises(ef.RecordError, match="column `day` is a date outside of the years 1 to 9999"):
        writer.write(ef.Batch(rows))


@pytest.mark.parametrize(
    "value",
    [1.5, b"x", [1], {"a": 1}, datetime(2026, 1, 31), Decimal("1.5")],
    ids=["float", "bytes", "list", "struct", "timestamp", "decimal"],
)
def test_column_of_a_type_that_can_not_name_folders_is_refused(value, tmp_path):
    message = "partition_by: column `k` is .*: folders can be named by texts, integers, booleans and dates; cast"
    writer = begun(ef.write_parquet(tmp_path, partition_by="k")).writer(0, 1)
    with pytest.raises(ef.ConnectorError, match=f"operator `write_parquet`: {message}"):
        writer.write(batch([{"k": value, "n": 1}]))
    assert re.match(message, ef.write_parquet(tmp_path, partition_by="k").problem(Columns({"k": pa.scalar(value).type})))


@pytest.mark.parametrize(
    ("columns", "message"),
    [("day", "partition_by: no column `day` among n"), (("n",), "partition_by names all columns, and files need one")],
)
def test_partition_columns_must_be_some_of_the_columns(columns, message, tmp_path):
    writer = begun(ef.write_parquet(tmp_path, partition_by=columns)).writer(0, 1)
    with pytest.raises(ef.ConnectorError, match=message):
        writer.write(batch([{"n": 1}]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition_by": 7}, r"partition_by=7: expected a column or several"),
        ({"partition_by": ("a", None)}, r"partition_by=\('a', None\): expected a column or several"),
        ({"partition_by": ("a", "a")}, r"partition_by=\('a', 'a'\) names a column twice"),
        ({"partition_by": "_a"}, r"partition_by: readers skip folders whose names begin with `_`; rename column `_a`"),
        ({"roll_bytes": 0}, r"roll_bytes=0: expected a number of bytes"),
        ({"roll_bytes": "1MB"}, r"roll_bytes='1MB': expected a number of bytes"),
        ({"roll_after": 0}, r"roll_after=0: expected more than no time"),
        ({"roll_after": "soon"}, r"roll_after 'soon' is not a duration"),
    ],
)
@pytest.mark.parametrize("write", [ef.write_parquet, ef.write_csv, ef.write_json], ids=lambda write: write.__name__)
def test_wrong_options_of_a_layout_are_named(write, options, message, tmp_path):
    with pytest.raises(ef.FlowError, match=rf"operator `{write.__name__}`: {message}"):
        write(tmp_path, **options)


def test_part_that_has_waited_longest_is_closed_when_too_many_are_open(tmp_path, monkeypatch):
    monkeypatch.setattr(file_sink, "MOST_OPEN", 2)
    sink = begun(ef.write_parquet(tmp_path, partition_by="k"))
    writer = sink.writer(0, 1)
    for k in ("a", "b", "a", "c", "a", "b"):
        writer.write(batch([{"k": k, "n": 1}]))
        assert len(writer._open) <= 2
    sink.commit(1, writer.prepare(1))
    assert files(tmp_path) == ["k=a", "k=b", "k=b", "k=c"]
    assert Counter(row["k"] for row in read(tmp_path, pa.schema({"k": pa.string()}))) == {"a": 3, "b": 2, "c": 1}


def test_worker_with_too_many_files_in_a_checkpoint_stops_the_job(tmp_path, monkeypatch):
    monkeypatch.setattr(file_sink, "MOST_PARTS", 3)
    writer = begun(ef.write_parquet(tmp_path, partition_by="k")).writer(0, 1)
    writer.write(batch([{"k": str(k), "n": 1} for k in range(3)]))
    writer.prepare(1)
    with pytest.raises(
        ef.ConnectorError, match=r"written 3 files since the last checkpoint, the last one in `k=3`: choose columns with fewer"
    ):
        writer.write(batch([{"k": str(k), "n": 1} for k in range(4)]))
    writer.close()


@pytest.mark.parametrize(("write", "rows"), [(ef.write_csv, 3), (ef.write_json, 3), (ef.write_parquet, 2)], ids=lambda value: str(value))
def test_part_is_closed_with_the_batch_with_which_it_is_large_enough(write, rows, tmp_path):
    sink = begun(write(tmp_path, roll_bytes=25))
    writer = sink.writer(0, 1)
    for n in range(6):
        writer.write(batch([{"number": 1_000_000 + n}]))
    parts = writer.prepare(1)
    sink.commit(1, parts)
    assert len(parts) > 1
    assert [part["size"] for part in parts] == [(tmp_path / part["final"]).stat().st_size for part in parts]


def test_part_is_closed_when_it_has_been_open_for_long_enough(tmp_path):
    now = 100.0
    sink = begun(ef.write_parquet(tmp_path, partition_by="k", roll_after="5m"))
    writer = FileWriter(sink, 0, lambda: now)
    writer.write(batch([{"k": "a", "n": 1}]))
    now = 300.0
    writer.write(batch([{"k": "b", "n": 1}]))
    assert [*writer._open] == ["k=a", "k=b"]
    now = 400.0
    writer.write(batch([{"k": "c", "n": 1}]))
    assert [*writer._open] == ["k=b", "k=c"], "also a part that gets no rows"
    sink.commit(1, writer.prepare(1))
    assert files(tmp_path) == ["k=a", "k=b", "k=c"]


def test_files_of_another_layout_are_not_mixed_in(tmp_path):
    for columns in ("k", ("k", "d")):
        sink = begun(ef.write_parquet(tmp_path, partition_by=columns, append=True))
        writer = sink.writer(0, 1)
        writer.write(batch([{"k": "a", "d": "b", "n": 1}]))
        sink.commit(1, writer.prepare(1))
    with pytest.raises(ef.ConnectorError, match=r"holds `k=a`, and partition_by needs folders `d=\.\.\.`, or choose another folder"):
        begun(ef.write_parquet(tmp_path, partition_by="d", append=True))
    with pytest.raises(ef.ConnectorError, match="holds the partition folder `k=a`; say partition_by= as the files were written"):
        begun(ef.write_parquet(tmp_path, append=True))
    begun(ef.write_parquet(tmp_path, overwrite=True))
    assert [*tmp_path.iterdir()] == []


def test_retraction_removes_files_and_folders_of_partitions_that_it_leaves_empty(tmp_path):
    sink = begun(ef.write_parquet(tmp_path, partition_by=("k", "d")))
    writer = sink.writer(0, 1)
    for checkpoint, k in enumerate("aab", 1):
        writer.write(batch([{"k": k, "d": str(checkpoint), "n": 1}]))
        sink.commit(checkpoint, writer.prepare(checkpoint))
    for _ in range(2):
        sink.retract(1)
        assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_dir()) == ["k=a", "k=a/d=1"]
    assert files(tmp_path) == ["k=a/d=1"]
