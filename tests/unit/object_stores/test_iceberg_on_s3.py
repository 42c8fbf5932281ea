"""Iceberg tables on S3: a checkpoint is in the table once, though requests fail and replies get lost, with both kinds of catalogs."""

from __future__ import annotations

from contextlib import ExitStack

import fsspec
import pyarrow as pa
import pytest
from iceberg_rest import rest_catalog
from patience import patience
from pyiceberg.catalog import load_catalog
from store_proxy import Fault
from test_jobs_on_stores import TOTAL, Gate, failed_checkpoints, settings, until

import evenflow as ef
from evenflow.connectors.iceberg import committing
from evenflow.engine.batch import Batch
from evenflow.testing import check_sink

pytestmark = pytest.mark.slow

KEY = "not-for-everyones-eyes"


class Tables:
    """A catalog whose tables are on S3; `options` reach it as a program does, `table` as another program does."""

    def __init__(self, options, address):
        self.options, self._address = options, address

    def table(self, name="shop.rows"):
        return load_catalog("test", **{**self.options, **self._address}).load_table(name)

    def numbers(self):
        return sorted(self.table().scan().to_arrow()["n"].to_pylist())


@pytest.fixture(params=["sql", "rest"])
def tables(request, store, url, tmp_path, monkeypatch):
    """Provide a catalog. Only the environment has the endpoint and the region, and programs have a placeholder of the secret."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("STORE_KEY", KEY)
    monkeypatch.setattr(committing, "FIRST_PAUSE", 0.01)
    login = {"s3.access-key-id": "me", "s3.secret-access-key": KEY}
    hidden = login | {"s3.secret-access-key": ef.secret("env:STORE_KEY")}
    address = login | {"s3.endpoint": store.url, "s3.region": "us-east-1"}
    with ExitStack() as servers:
        if request.param == "sql":
            options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": url}
        else:
            options = servers.enter_context(rest_catalog(tmp_path, {**address, "warehouse": url})).options
        yield Tables({**options, **hidden}, address)


def begun(tables):
    sink = ef.write_iceberg("shop.rows", catalog="test", options=tables.options)
    sink.start()
    return sink


def prepared(sink, checkpoint, *numbers):
    writer = sink.writer(0, 1)
    try:
        writer.write(Batch(pa.record_batch({"n": [*numbers]})))
        return writer.prepare(checkpoint)
    finally:
        writer.close()


def test_tables_on_s3_are_written_and_read_and_no_object_has_the_secret(tables, url):
    sink = begun(tables)
    for checkpoint in (1, 2):
        parts = prepared(sink, checkpoint, checkpoint)
        sink.commit(checkpoint, parts)
        sink.commit(checkpoint, parts)
    sink.stop()
    assert tables.numbers() == [1, 2]
    found = []
    flow = ef.Dataflow("reading")
    flow.read(ef.read_iceberg("shop.rows", catalog="test", options=tables.options)).write(ef.to_list(found))
    flow.run(runtime="local").wait("60s")
    assert sorted(row["n"] for row in found) == [1, 2]
    files = fsspec.filesystem("s3")
    assert not any(KEY.encode() in data for data in files.cat(files.find(url)).values())


@pytest.mark.parametrize(
    ("kind", "step"), [("lost", "piece"), ("lost", "create"), ("overloaded", "piece"), ("cut", "read"), ("cut", "look")]
)
def test_a_commit_whose_request_fails_or_whose_reply_is_lost_is_made_once(kind, step, tables, store):
    sink = begun(tables)
    sink.commit(1, prepared(sink, 1, 1))
    parts = prepared(sink, 2, 2, 3)
    store.fault = Fault(kind, lambda request: request.kind == step, times=5)
    sink.commit(2, parts)
    assert store.fault.met
    store.fault = Fault("none", times=0)
    sink.commit(2, parts)
    sink.stop()
    assert tables.numbers() == [1, 2, 3]
    assert len(tables.table().snapshots()) == 2


def test_store_that_denies_is_named_at_the_start_while_writing_and_at_a_commit(tables, store, monkeypatch):
    monkeypatch.setattr(committing, "MOST_TRIES", 2)
    sink = begun(tables)
    store.fault = Fault("denied", lambda request: "/data/" in request.name)
    with pytest.raises(ef.ConnectorError, match=r"operator `write_iceberg`: the table shop.rows of catalog `test` can't be written: "):
        prepared(sink, 1, 1)
    store.fault = Fault("none", times=0)
    parts = prepared(sink, 1, 1)
    store.fault = Fault("denied", lambda request: "/metadata/" in request.name and request.writes)
    with pytest.raises(ef.ConnectorError, match=r"shop.rows of catalog `test` can't take checkpoint 1 \(2 tries\): "):
        sink.commit(1, parts)
    with pytest.raises(ef.ConnectorError, match=r"shop.rows of catalog `test` can't be prepared"):
        begun(tables)


def test_job_into_a_table_outlives_a_store_that_is_out_of_reach(tables, store, url, tmp_path):
    gate = Gate()
    flow = ef.Dataflow("jobs")
    flow.read(ef.from_generator(gate, poll_every="1ms")).write(ef.write_iceberg("shop.rows", catalog="test", options=tables.options))
    job = flow.run(runtime="local", config=settings(str(tmp_path / "checkpoints")))
    assert gate.reached.wait(patience(30))
    job.checkpoint()
    store.fault = Fault("cut")
    gate.open.set()
    until(lambda: failed_checkpoints(job) or job.status().state.value == "restarting" or store.fault.met)
    store.fault = Fault("none", times=0)
    job.wait("120s")
    assert tables.numbers() == list(range(TOTAL))


@pytest.mark.parametrize("tables", ["sql"], indirect=True)
def test_iceberg_sink_on_s3_conforms(tables):
    made = 0

    def begin():
        nonlocal made
        made += 1
        name = f"shop.rows{made}"
        sink = ef.write_iceberg(name, catalog="test", options=tables.options)
        return sink, lambda: tables.table(name).scan().to_arrow().to_pylist()

    check_sink(begin, seeds=range(1))
