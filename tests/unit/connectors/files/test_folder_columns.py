"""Columns in the names of folders: rows that a sink has partitioned come back as they were, and folders that don't fit are named."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_partitions import ROWS, SCHEMA, TYPES, batch, begun

import evenflow as ef
from evenflow.connectors.followed import follow

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

KINDS: dict[str, tuple[Any, Any]] = {
    "parquet": (ef.write_parquet, ef.read_parquet),
    "csv": (ef.write_csv, ef.read_csv),
    "json": (ef.write_json, ef.read_json),
}
every_kind = pytest.mark.parametrize("kind", [*KINDS])


@pytest.fixture(autouse=True)
def looks_whenever_polled(monkeypatch):
    """Remove the pause after a look that took long."""
    monkeypatch.setattr(follow, "LOOKING", 1.0)


def put(folder: Path, place: str, kind: str = "parquet", **columns: Any) -> Path:
    """Write a file with these columns into a folder below."""
    path = folder / f"{place}.{kind}"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.table(columns)
    if kind == "parquet":
        pq.write_table(rows, path)
    elif kind == "csv":
        path.write_text("\n".join(",".join(map(str, row)) for row in [rows.column_names, *zip(*columns.values(), strict=True)]) + "\n")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
    return path


def rows_of(source: Any, key: str = "n") -> list[dict[str, Any]]:
    source.start()
    reader, rows = source.reader(0, 1), list[dict[str, Any]]()
    while not reader.finished:
        found = reader.poll(5)
        rows += [] if found is None else found.to_rows()
    return sorted(rows, key=lambda row: row[key])


def polled(reader: Any) -> list[dict[str, Any]]:
    rows = list[dict[str, Any]]()
    while (found := reader.poll(5)) is not None:
        rows += found.to_rows()
    return sorted(rows, key=lambda row: row["n"])


@pytest.mark.slow
@every_kind
@given(rows=ROWS, columns=st.permutations([*TYPES]).flatmap(lambda names: st.integers(1, 4).map(lambda n: names[:n])))
def test_rows_that_were_partitioned_come_back_as_they_were(rows, columns, kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    write, read = KINDS[kind]
    schema = pa.schema([*(SCHEMA.field(name) for name in columns), pa.field("n", pa.int64())])
    rows = [{**{name: row[name] for name in columns}, "n": n} for n, row in enumerate(rows)]
    sink = begun(write(folder, partition_by=columns))
    writer = sink.writer(0, 1)
    writer.write(batch(rows, schema))
    sink.commit(1, writer.prepare(1))
    assert rows == ([] if not rows else rows_of(read(folder, schema=schema)))


@every_kind
def test_values_are_texts_unless_declared_and_files_keep_their_own_types(kind, tmp_path):
    for place, n in (("code=007/day=2026-01-31/a", 1), ("code=__HIVE_DEFAULT_PARTITION__/day=2026-02-01/a", 2)):
        put(tmp_path, place, kind, n=[n], x=[n / 2])
    source = KINDS[kind][1](tmp_path, schema={"day": "date32"})
    assert rows_of(source) == [
        {"n": 1, "x": 0.5, "code": "007", "day": date(2026, 1, 31)},
        {"n": 2, "x": 1.0, "code": None, "day": date(2026, 2, 1)},
    ]
    assert source.known_columns().types["code"] == pa.string()


@every_kind
def test_folders_that_a_glob_names_give_their_columns_and_those_of_the_path_do_not(kind, tmp_path):
    put(tmp_path, "region=eu/day=1/a", kind, n=[1])
    read = KINDS[kind][1]
    assert rows_of(read(tmp_path / "region=*" / "*")) == [{"n": 1, "region": "eu", "day": "1"}]
    assert rows_of(read(tmp_path / "region=eu")) == [{"n": 1, "day": "1"}]
    assert rows_of(read(tmp_path / "region=eu" / "day=1" / f"a.{kind}")) == [{"n": 1}]


@pytest.mark.few(1)
@every_kind
def test_a_flow_may_need_only_the_columns_of_folders(kind, tmp_path):
    put(tmp_path, "region=eu/a", kind, n=[1, 2], x=["a", "b"])
    put(tmp_path, "region=us/a", kind, n=[3], x=["c"])
    flow, found = ef.Dataflow("counts"), list[Any]()
    flow.read(KINDS[kind][1](tmp_path)).key_by("region").aggregate(rows=ef.count()).write(ef.to_list(found))
    flow.run(runtime="local").wait("60s")
    assert sorted((row["region"], row["rows"]) for row in found) == [("eu", 2), ("us", 1)]


@every_kind
def test_files_that_appear_later_have_the_columns_of_their_folders(kind, tmp_path):
    put(tmp_path, "region=eu/a", kind, n=[1])
    source = KINDS[kind][1](tmp_path, follow=True, poll_every="1us", schema={"n": "int64", "region": "string"})
    source.start()
    reader = source.reader(0, 1)
    assert polled(reader) == [{"n": 1, "region": "eu"}]
    position = reader.position()
    put(tmp_path, "region=__HIVE_DEFAULT_PARTITION__/a", kind, n=[2])
    restored = source.reader(0, 1)
    restored.seek(position)
    assert polled(restored) == [{"n": 2, "region": None}]


@every_kind
def test_a_followed_folder_may_be_empty_at_the_start(kind, tmp_path):
    source = KINDS[kind][1](tmp_path, follow=True, poll_every="1us", schema={"year": "int32", "n": "int64"})
    source.start()
    reader = source.reader(0, 1)
    assert polled(reader) == []
    put(tmp_path, "year=2026/a", kind, n=[1])
    assert polled(reader) == [{"year": 2026, "n": 1}]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_lines_that_are_appended_have_the_columns_of_their_folder(kind, tmp_path):
    path = put(tmp_path, "region=eu/a", kind, n=[1])
    source = KINDS[kind][1](tmp_path, follow="lines", poll_every="1us")
    source.start()
    reader = source.reader(0, 1)
    assert polled(reader) == [{"n": 1, "region": "eu"}]
    with path.open("a") as file:
        file.write("2\n" if kind == "csv" else '{"n": 2}\n')
    assert polled(reader) == [{"n": 2, "region": "eu"}]


@every_kind
def test_a_column_of_both_the_file_and_its_folder_must_agree(kind, tmp_path):
    put(tmp_path / "same", "day=007/a", kind, n=[1, 2], day=[7, 7])
    put(tmp_path / "same", "day=8/a", kind, n=[3], day=[8])
    assert [row["day"] for row in rows_of(KINDS[kind][1](tmp_path / "same"))] == [7, 7, 8]
    put(tmp_path / "other", "day=7/a", kind, n=[1, 2], day=[7, 8])
    with pytest.raises(ef.ConnectorError, match=rf"other/day=7/a.{kind}: column `day` is 8 in the file, and its folder says 7; move"):
        rows_of(KINDS[kind][1](tmp_path / "other"))


def test_a_file_without_a_value_disagrees_with_its_folder_and_json_without_the_field_takes_it(tmp_path):
    put(tmp_path / "parquet", "day=7/a", n=[1], day=pa.array([None], pa.int64()))
    with pytest.raises(ef.ConnectorError, match="column `day` is None in the file, and its folder says 7"):
        rows_of(ef.read_parquet(tmp_path / "parquet"))
    put(tmp_path / "csv", "day=7/a", "csv", n=[1, 2], day=["", "7"])
    with pytest.raises(ef.ConnectorError, match="column `day` is None in the file, and its folder says 7"):
        rows_of(ef.read_csv(tmp_path / "csv"))
    put(tmp_path / "null", "day=__HIVE_DEFAULT_PARTITION__/a", n=[1], day=[7])
    with pytest.raises(ef.ConnectorError, match="column `day` is 7 in the file, and its folder says None"):
        rows_of(ef.read_parquet(tmp_path / "null"))
    put(tmp_path / "json", "day=7/a", "json", n=[1]).write_text('{"n": 1}\n{"n": 2, "day": 7}\n')
    assert [row["day"] for row in rows_of(ef.read_json(tmp_path / "json"))] == [7, 7]


@every_kind
def test_files_with_other_folders_are_refused_at_the_start_and_later(kind, tmp_path):
    read = KINDS[kind][1]
    put(tmp_path, "region=eu/a", kind, n=[1])
    source = read(tmp_path, follow=True, poll_every="1us")
    source.start()
    reader = source.reader(0, 1)
    assert len(polled(reader)) == 1
    put(tmp_path, "b", kind, n=[2])
    with pytest.raises(ef.ConnectorError, match="region"):
        polled(reader)
    with pytest.raises(ef.ConnectorError, match=r"region.*all files need the same columns"):
        read(tmp_path).start()


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("region=", "`region=` has no value; that of null is __HIVE_DEFAULT_PARTITION__"),
        ("=eu", "`=eu` has no column"),
        ("a=1/a=2", "`a=2` names a column twice"),
        ("a=%FF", "`a=%FF` is not UTF-8"),
        ("day=monday", r"the folder `day=monday` has no value of the type int32: .*; give `day` another type in `schema`"),
    ],
)
def test_a_folder_whose_name_has_no_value_is_named(folder, problem, tmp_path):
    put(tmp_path, f"{folder}/a", n=[1])
    with pytest.raises(ef.ConnectorError, match=problem):
        ef.read_parquet(tmp_path, schema={"day": "int32"} if "day" in folder else None).start()


def test_text_has_no_column_for_a_folder_and_a_glob_reads_it_without(tmp_path):
    path = tmp_path / "year=2026" / "a.txt"
    path.parent.mkdir()
    path.write_text("one\n")
    with pytest.raises(ef.ConnectorError, match=r"year=2026/a.txt is in a partition folder, .* give the glob"):
        ef.read_text(tmp_path).start()
    assert rows_of(ef.read_text(os.path.join(tmp_path, "*", "*.txt")), "item") == [{"item": "one"}]  # noqa: PTH118 -- a glob


@pytest.mark.few(1)
@every_kind
def test_the_event_time_may_be_a_folders_date(kind, tmp_path):
    for day in (2, 1):
        put(tmp_path, f"day=2026-01-0{day}/a", kind, n=[day])
    flow, found = ef.Dataflow("days"), list[Any]()
    rows = flow.read(KINDS[kind][1](tmp_path, event_time="day", schema={"day": "date32"}))
    rows.window(ef.tumbling("1d")).aggregate(rows=ef.count()).write(ef.to_list(found))
    flow.run(runtime="local").wait("60s")
    assert [row["rows"] for row in found] == [1, 1]


def test_parquet_says_that_a_declared_type_is_another_than_the_files(tmp_path):
    put(tmp_path, "day=7/a", n=[1], day=[7])
    with pytest.raises(ef.ConnectorError, match=r"column `day` is int64 in .*a.parquet, whose folder has it too, and int32 in `schema`"):
        ef.read_parquet(tmp_path, schema={"day": "int32"}).start()
