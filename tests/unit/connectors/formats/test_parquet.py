from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded_sources import rows

from evenflow.connectors.exchange.exchange_folder import ExchangeFolder
from evenflow.connectors.formats import parquet
from evenflow.connectors.formats.parquet import read_parquet
from evenflow.engine.errors import ConnectorError


def write(path, columns, **options):
    pq.write_table(pa.table(columns), path, **options)


def test_row_groups_are_shared_out_between_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_PER_SPLIT", 10)
    write(tmp_path / "a.parquet", {"n": range(100)}, row_group_size=10)
    source = read_parquet(tmp_path)
    source.start()
    assert source.reader(0, 2).poll(1000).rows["n"].to_pylist() == list(range(10))
    assert source.reader(1, 2).poll(1000).rows["n"].to_pylist() == list(range(10, 20))


def test_only_committed_files_of_a_folder_that_spark_streamed_into_are_read(tmp_path):
    for name, n in (("a", 3), ("b", 2), ("c", 1)):
        write(tmp_path / f"{name}.parquet", {"n": [n]})
    exchange = ExchangeFolder(tmp_path)
    exchange.create()
    exchange.append([tmp_path / "c.parquet"])
    exchange.append([tmp_path / "a.parquet"])
    assert rows(read_parquet(tmp_path)) == [{"n": 1}, {"n": 3}]


def test_an_empty_log_of_spark_means_no_files(tmp_path):
    write(tmp_path / "a.parquet", {"n": [3]})
    ExchangeFolder(tmp_path).create()
    assert rows(read_parquet(tmp_path)) == []


def test_a_list_keeps_its_order_and_gives_a_file_once(tmp_path):
    for name, n in (("a", 1), ("b", 2)):
        write(tmp_path / f"{name}.parquet", {"n": [n]})
    assert rows(read_parquet([tmp_path / "b.parquet", tmp_path])) == [{"n": 2}, {"n": 1}]


def test_small_row_groups_are_read_together(tmp_path):
    write(tmp_path / "a.parquet", {"n": range(100)}, row_group_size=10)
    source = read_parquet(tmp_path)
    source.start()
    assert source.reader(1, 2).finished


def test_statistics_bound_the_watermark_before_anything_is_read(tmp_path):
    write(tmp_path / "a.parquet", {"at": [datetime(1970, 1, 1, 0, 0, 9, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC)]})
    source = read_parquet(tmp_path, event_time="at")
    source.start()
    assert source.reader(0, 1).watermark() == 7_000_000


def test_only_the_columns_asked_for_are_read_in_their_order(tmp_path):
    write(tmp_path / "a.parquet", {"a": [1], "b": [2], "c": [3]})
    assert [list(row.items()) for row in rows(read_parquet(tmp_path, columns=["c", "a"]))] == [[("c", 3), ("a", 1)]]


def test_a_column_that_is_null_in_one_file_takes_the_type_of_the_others(tmp_path):
    write(tmp_path / "a.parquet", {"n": pa.nulls(1), "m": [1]})
    write(tmp_path / "b.parquet", {"m": [2], "n": ["x"]})
    source = read_parquet(tmp_path)
    assert rows(source) == [{"n": None, "m": 1}, {"n": "x", "m": 2}]
    assert source.reader(0, 1).poll(10).rows.schema == pa.schema({"n": pa.string(), "m": pa.int64()})


def test_files_of_different_types_are_refused(tmp_path):
    write(tmp_path / "a.parquet", {"n": [1]})
    write(tmp_path / "b.parquet", {"n": ["x"]})
    with pytest.raises(ConnectorError, match=r"column `n` is int64 in .*a.parquet but string in .*b.parquet"):
        read_parquet(tmp_path).start()


@pytest.mark.parametrize("more", ["a", "b"])
def test_files_of_different_columns_are_refused(tmp_path, more):
    write(tmp_path / "a.parquet", {"n": [1], **({"m": [1]} if more == "a" else {})})
    write(tmp_path / "b.parquet", {"n": [1], **({"m": [1]} if more == "b" else {})})
    with pytest.raises(ConnectorError, match=rf"column `m` is in .*{more}.parquet but not in .*columns=\[...\]"):
        read_parquet(tmp_path).start()
    assert rows(read_parquet(tmp_path, columns=["n"])) == [{"n": 1}] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"event_time": "ts"}, "no event time column `ts`; there are: n, word"),
        ({"event_time": "word"}, "event time column `word` is string; expected a timestamp"),
        ({"event_time": "n", "columns": ["word"]}, "no event time column `n`; there are: word"),
        ({"columns": ["n", "x"]}, r"a.parquet has no column `x`; it has: n, word"),
    ],
)
def test_a_wrong_column_is_found_at_the_start(tmp_path, options, message):
    write(tmp_path / "a.parquet", {"n": [1], "word": ["x"]})
    with pytest.raises(ConnectorError, match=message):
        read_parquet(tmp_path, **options).start()


def test_a_file_that_is_not_parquet_is_named(tmp_path):
    (tmp_path / "a.parquet").write_text("n\n1\n")
    with pytest.raises(ConnectorError, match=r"a.parquet can't be read as Parquet"):
        read_parquet(tmp_path).start()


def test_two_columns_of_one_name_are_refused(tmp_path):
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"]), tmp_path / "a.parquet")
    with pytest.raises(ConnectorError, match="two columns named `n`"):
        read_parquet(tmp_path).start()


def test_a_file_that_is_gone_after_the_start_is_named(tmp_path):
    write(tmp_path / "a.parquet", {"n": [1]})
    source = read_parquet(tmp_path)
    source.start()
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(ConnectorError, match=r"a.parquet does not exist"):
        source.reader(0, 1).poll(10)


def test_a_reader_before_the_start_is_refused(tmp_path):
    with pytest.raises(ConnectorError, match="must be called before reader"):
        read_parquet(tmp_path).reader(0, 1)
