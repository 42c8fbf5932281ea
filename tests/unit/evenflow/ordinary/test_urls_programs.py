"""Programs that name files, folders and checkpoints by URLs: what works, and what is refused when the flow is written."""

from __future__ import annotations

import sys
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest

import evenflow as ef

ROWS = [{"a": 1}, {"a": 2}]


@pytest.fixture(autouse=True)
def program(waiting_for_jobs, monkeypatch, tmp_path):
    """Let a job's handle sleep between two polls, and give the program a folder of its own for relative paths."""
    monkeypatch.chdir(tmp_path)


def run(sink, source=None, config=None, **options):
    flow = ef.Dataflow("urls")
    flow.read(source if source is not None else ef.from_items(ROWS)).write(sink)
    flow.run(runtime="local", config=config, **options).wait("30s")


SINKS = {"parquet": ef.write_parquet, "csv": ef.write_csv, "json": ef.write_json, "delta": ef.write_delta}


@pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)
def test_sink_writes_into_the_folder_of_a_file_url(tmp_path, sink):
    run(sink(f"file://{tmp_path}/out"))
    assert any(path.name.startswith("part-") for path in (tmp_path / "out").iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("make", [*SINKS.values(), ef.read_parquet, ef.read_csv], ids=[*SINKS, "read_parquet", "read_csv"])
def test_place_that_is_a_secret_as_a_whole_is_no_local_folder(make, tmp_path):
    with pytest.raises(ef.FlowError, match="a secret can be a part of a URL, not all of it"):
        make(ef.secret("env:PLACE"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "url", ["s3://bucket/out", "gs://bucket/out", "hdfs://host/out", "ss3://bucket/out", "memory://out", "S3://bucket/out"]
)
def test_delta_sink_refuses_every_other_url_when_the_flow_is_written(tmp_path, url):
    says = rf"operator `write_delta`: {url} can't be used: it takes a folder that all workers and the driver share.*file:///path"
    with pytest.raises(ef.FlowError, match=says):
        ef.write_delta(url)
    assert not list(tmp_path.iterdir())


FILE_SINKS = [ef.write_parquet, ef.write_csv, ef.write_json]


@pytest.mark.parametrize("url", ["oss://bucket/out", "ss3://bucket/out", "S3://bucket/out"])
@pytest.mark.parametrize("sink", FILE_SINKS, ids=lambda sink: sink.__name__)
def test_file_sink_refuses_an_unknown_protocol_and_one_whose_package_is_missing(tmp_path, sink, url):
    with pytest.raises(
        ef.FlowError, match=rf"operator `{sink.__name__}`: {url.partition(':')[0]}:// can't be used: .*(not known|pip install)"
    ):
        sink(url)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sink", FILE_SINKS, ids=lambda sink: sink.__name__)
def test_file_sink_writes_objects_and_no_folder(tmp_path, sink):
    files = fsspec.filesystem("memory")
    run(sink(f"memory://urls/{sink.__name__}"))
    assert [path.split("/")[3].partition("-")[0] for path in files.find(f"/urls/{sink.__name__}")] == ["part"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", [Path("s3://bucket/out"), "s3:/bucket/out", Path("gs://bucket/out")], ids=["path", "text", "gs"])
@pytest.mark.parametrize("make", [*SINKS.values(), ef.read_parquet, ef.read_text, ef.read_delta], ids=lambda make: make.__name__)
def test_url_that_lost_a_slash_in_a_path_is_refused(tmp_path, make, path):
    with pytest.raises(ef.FlowError, match=r"is a URL without its second slash; give it as a string: '(s3|gs)://bucket/out'"):
        make(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("make", [*SINKS.values(), ef.read_parquet], ids=lambda make: make.__name__)
def test_wrong_paths_are_refused(make):
    with pytest.raises(ef.FlowError, match=r"7 is neither a path nor a URL|\[7\]: expected a path or a URL"):
        make([7] if make is ef.read_parquet else 7)


def test_delta_tables_of_object_stores_are_refused():
    with pytest.raises(ef.FlowError, match=r"operator `read_delta`: s3://bucket/table can't be used"):
        ef.read_delta("s3://bucket/table")


def test_source_reads_the_folder_of_a_file_url(tmp_path):
    rows = []
    run(ef.write_parquet(tmp_path / "in"))
    run(ef.to_list(rows), ef.read_parquet(f"file://{tmp_path}/in"))
    assert rows == ROWS


def test_checkpoints_are_written_to_a_file_url(tmp_path):
    run(ef.to_list([]), config=ef.JobConfig(checkpoint=ef.CheckpointConfig(f"file://{tmp_path}/ck")))
    assert list((tmp_path / "ck" / "urls").glob("checkpoint-*/manifest"))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nope://bucket/ck", r"CheckpointConfig\(dir=...\): nope://bucket/ck/urls can't be used: .*nope: expected a folder, or a URL"),
        (Path("s3://bucket/ck"), r"CheckpointConfig\(dir=...\): 's3:/bucket/ck' is a URL without its second slash"),
    ],
    ids=["unknown", "path"],
)
def test_checkpoint_folder_that_no_file_system_opens_is_refused(tmp_path, url, says):
    with pytest.raises(ef.FlowError, match=says):
        run(ef.to_list([]), config=ef.JobConfig(checkpoint=ef.CheckpointConfig(url)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("protocol", "module", "remedy"), [("s3", "s3fs", r"pip install 'evenflow\[s3\]'"), ("gs", "gcsfs", r"pip install 'evenflow\[gcs\]'")]
)
def test_package_that_is_missing_is_named(monkeypatch, protocol, module, remedy):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, protocol, raising=False)
    with pytest.raises(ef.FlowError, match=rf"{protocol}:// can't be used: .*{remedy}"):
        ef.read_parquet(f"{protocol}://bucket/in")
    with pytest.raises(ef.FlowError, match=rf"CheckpointConfig\(dir=...\): {protocol}://bucket/ck/urls can't be used: .*{remedy}"):
        run(ef.to_list([]), config=ef.JobConfig(checkpoint=ef.CheckpointConfig(f"{protocol}://bucket/ck")))
    with pytest.raises(ef.StateError, match=remedy):
        ef.read_savepoint(f"{protocol}://bucket/savepoint")


def test_files_of_a_url_are_read_and_written_to_a_folder(tmp_path):
    with fsspec.open(f"memory://{tmp_path.name}/in/a.jsonl", "w") as file:
        file.write('{"a": 1}\n{"a": 2}\n')
    run(ef.write_parquet(tmp_path / "out"), ef.read_json(f"memory://{tmp_path.name}/in"))
    assert pq.read_table(tmp_path / "out").to_pylist() == ROWS
