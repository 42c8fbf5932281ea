"""Jobs on Ray write an Iceberg table on S3, and follow it, while their workers, a coordinator and the catalog's database are killed."""

from __future__ import annotations

import os
import signal

import boto3
import pytest
from moto.server import ThreadedMotoServer
from postgres_server import postgres_server
from pyiceberg.catalog import load_catalog
from watching import await_rows, pid

import evenflow as ef

RATE = 1_000
KEY = "@ key/with:signs"


@pytest.fixture
def server():
    with postgres_server() as server:
        yield server


@pytest.fixture
def store():
    """Provide the properties that reach an S3 server."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    found = {
        "s3.endpoint": "http://{}:{}".format(*server.get_host_and_port()),
        "s3.region": "us-east-1",
        "s3.access-key-id": "me",
        "s3.secret-access-key": KEY,
    }
    boto3.resource(
        "s3", endpoint_url=found["s3.endpoint"], region_name="us-east-1", aws_access_key_id="me", aws_secret_access_key=KEY
    ).create_bucket(Bucket="bucket")
    yield found
    server.stop()


def config(folder):
    checkpoint = ef.CheckpointConfig(str(folder), interval="1s")
    return ef.JobConfig(parallelism=2, checkpoint=checkpoint, restart=ef.RestartConfig(delay="100ms", most=1_000))


@pytest.mark.timeout(600)
def test_rows_are_in_the_table_once_and_read_once_though_workers_and_servers_are_killed(server, store, tmp_path):
    (tmp_path / "key").write_text(KEY)
    key = ef.secret(f"file:{tmp_path}/key")
    place = server.url.partition("@")[2]
    tables = {"type": "sql", "uri": f"postgresql+psycopg://postgres:{key}@{place}", "warehouse": "s3://bucket/tables"}
    options = {**tables, **store, "s3.secret-access-key": key}
    delivered, read = [], []
    writing = ef.Dataflow("writing")
    rows = writing.read(ef.generate(rate=RATE, every="50ms", keys=50))
    rows.write(ef.write_iceberg("shop.rows", catalog="test", options=options)).write(ef.to_list(delivered))
    writer = writing.run(config=config(tmp_path / "writing"))
    jobs = [writer]
    try:
        await_rows(writer, delivered, RATE / 2)
        reading = ef.Dataflow("reading")
        source = ef.read_iceberg("shop.rows", catalog="test", options=options, follow=True, poll_every="500ms")
        reading.read(source).write(ef.to_list(read))
        reader = reading.run(config=config(tmp_path / "reading"))
        jobs.append(reader)
        await_rows(reader, read, RATE / 2)
        os.kill(pid(writer, "generate-0"), signal.SIGKILL)
        os.kill(pid(reader, "read_iceberg-1"), signal.SIGKILL)
        await_rows(writer, delivered, RATE / 2)
        await_rows(reader, read, RATE / 2)
        os.kill(pid(writer, "coordinator"), signal.SIGKILL)
        await_rows(writer, delivered, RATE / 2)
        server.stop()  # at once, as a crash
        server.start()
        await_rows(writer, delivered, RATE / 2)
        writer.stop(drain=True)
        writer.wait("60s")
        await_rows(reader, read, len(delivered) - len(read) - 1)
        reader.stop()
        reader.wait("60s")
    finally:
        for job in jobs:
            if not job.status().state.final:
                job.cancel()
    catalog = load_catalog("test", **tables | {"uri": f"postgresql+psycopg://postgres@{place}"}, **store)
    seqs = sorted(catalog.load_table("shop.rows").scan().to_arrow()["seq"].to_pylist())
    catalog.close()
    assert seqs == sorted(row["seq"] for row in delivered)
    assert seqs == sorted(row["seq"] for row in read)
    for source in range(2):
        mine = [seq for seq in seqs if seq % 2 == source]
        assert mine == list(range(source, source + 2 * len(mine), 2)), "each row once, none missing"
