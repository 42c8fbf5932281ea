"""Sources of files in object stores: a file, a folder, a glob, and a folder that is followed."""

from __future__ import annotations

import threading
from typing import Any

import fsspec
import pytest
from every_store import every_store, on_azure
from patience import patience
from store_proxy import Fault

import evenflow as ef
from evenflow.connectors.files.remote import listed

pytestmark = pytest.mark.slow


def put(url: str, **texts: str) -> None:
    files, root = fsspec.core.url_to_fs(url)
    for name, text in texts.items():
        files.pipe_file(f"{root}/{name}.txt", text.encode())


def lines(source: Any) -> list[str]:
    flow, found = ef.Dataflow("lines"), list[Any]()
    flow.read(source).write(ef.to_list(found))
    flow.run(runtime="local").wait("60s")
    return items(found)


def items(rows: list[Any]) -> list[str]:
    return sorted(row["item"] for row in rows)


@every_store
def test_file_folder_and_glob_are_read(store, url):
    put(url, a="1\n2\n", b="3\n", _hidden="4\n")
    assert lines(ef.read_text(url)) == ["1", "2", "3"]
    assert lines(ef.read_text(f"{url}/b.txt")) == ["3"]
    assert lines(ef.read_text(f"{url}/*.txt")) == ["1", "2", "3"]


@every_store
@pytest.mark.parametrize(
    ("write", "read"), [(ef.write_parquet, ef.read_parquet), (ef.write_csv, ef.read_csv), (ef.write_json, ef.read_json)]
)
def test_rows_that_a_sink_partitioned_come_back_as_they_were(write, read, store, url):
    rows = [{"n": n, "region": region, "day": day} for n, (region, day) in enumerate([("a/b %=?", 1), (None, 2), ("007", None)])]
    writing, reading, found = ef.Dataflow("writing"), ef.Dataflow("reading"), list[Any]()
    writing.read(ef.from_items(rows)).write(write(url, partition_by=("region", "day")))
    writing.run(runtime="local").wait("60s")
    reading.read(read(url, schema={"n": "int64", "region": "string", "day": "int64"})).write(ef.to_list(found))
    reading.run(runtime="local").wait("60s")
    assert sorted(found, key=lambda row: row["n"]) == rows


@every_store
def test_folder_or_bucket_that_is_not_there_is_named(store, url):
    for path in (url, f"{store.protocol}://nowhere/in"):
        with pytest.raises(ef.ConnectorError, match=f"operator `read_text`: .*{path}"):
            ef.read_text(path).start()


@every_store
def test_folder_is_followed_while_the_store_is_out_of_reach_for_a_while(store, url):
    put(url, a="1\n")
    flow, seen = ef.Dataflow("followed"), list[Any]()
    flow.read(ef.read_text(url, follow=True, poll_every="20ms")).write(ef.to_list(seen))
    config = ef.JobConfig(
        checkpoint=ef.CheckpointConfig(f"{url}-ck", interval="50ms", tolerable_failures=1000),
        restart=ef.RestartConfig("fixed", delay="10ms", most=1000),
    )
    job = flow.run(runtime="local", config=config)
    _until(lambda: items(seen) == ["1"])
    put(url, b="2\n")
    _until(lambda: items(seen) == ["1", "2"])
    store.fault = Fault("overloaded", lambda request: request.kind == "list", times=20)
    _until(lambda: len(store.fault.met) == 20)
    put(url, c="3\n")
    _until(lambda: items(seen) == ["1", "2", "3"])
    job.cancel()
    job.wait("60s")


@on_azure
def test_files_of_a_url_with_an_account_keep_the_account(store, url):
    put(url, a="1\n")
    with_account = url.replace("://bucket/", "://bucket@account.dfs.core.windows.net/")
    assert [file.url for file in listed(with_account)] == [f"{with_account}/a.txt"]


def _until(condition: Any) -> None:
    for _ in range(int(patience(60) / 0.05)):
        if condition():
            return
        threading.Event().wait(0.05)
    pytest.fail("not in time")
