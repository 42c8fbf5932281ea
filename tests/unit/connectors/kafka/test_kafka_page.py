"""The programs of the pages on Kafka and Debezium, run unchanged in this process, with a broker and a registry of the tests."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_broker import fill
from patience import patience
from schema_registry import schema_registry

import evenflow as ef
from evenflow.job import Job

PAGES = "how-to/kafka.md", "how-to/debezium.md", "how-to/kafka-sink.md", "how-to/kafka-avro.md"
DOCS = Path(__file__).parents[4] / "docs"
READ, TABLE, WRITE, UPSERT, AVRO = (
    code for page in PAGES for code in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
)
CLICKS = [{"user": "ann", "at": f"2026-01-31T10:0{minute}:00Z"} for minute in range(3)]


@pytest.fixture(autouse=True)
def jobs(waiting_for_jobs, monkeypatch, tmp_path) -> list[Job]:
    """Collect the jobs that the page starts in this process; a job's handle may sleep."""
    monkeypatch.chdir(tmp_path)
    started: list[Job] = []
    run = ef.Dataflow.run

    def run_here(flow: ef.Dataflow, **settings: Any) -> Job:
        started.append(run(flow, **{**settings, "runtime": "local"}))
        return started[-1]

    monkeypatch.setattr(ef.Dataflow, "run", run_here)
    yield started
    for job in started:
        with suppress(ef.JobNotRunningError):
            job.cancel()
        job.wait("60s")


def until(condition: Callable[[], bool]) -> None:
    """Wait until other threads have made the condition true."""
    end, pause = time.monotonic() + patience(60), threading.Event()
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        pause.wait(0.02)


def make_topic(bootstrap: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, 1, 1)]).values():
        made.result(timeout=patience(30))


def examples(code: str, bootstrap: str, **names: str) -> dict[str, Any]:
    """Run a program of the page with the tests' broker, and topics with their own names."""
    assert code.count("localhost:9092")
    code = code.replace("localhost:9092", bootstrap)
    for name, own in names.items():
        code = code.replace(f'"{name}"', f'"{own}"')
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "a page", "exec"), space)
    return space


@pytest.mark.slow
def test_clicks_are_counted_per_minute(bootstrap, jobs):
    make_topic(bootstrap, "page-clicks")
    fill(bootstrap, "page-clicks", {0: [(None, json.dumps(click).encode()) for click in CLICKS]})
    examples(READ.replace('idle_after="30s"', 'until="now"'), bootstrap, clicks="page-clicks")
    jobs[0].wait("60s")
    assert pq.read_table("clicks/")["n"].to_pylist() == [1, 1, 1]


@pytest.mark.slow
def test_customers_are_counted_by_city_from_the_changes_of_their_table(bootstrap, tmp_path):
    make_topic(bootstrap, "page-customers")
    rows = [{"id": 1, "city": "Oslo", "cents": 5}, {"id": 2, "city": "Rome", "cents": 3}, {"id": 1, "city": "Rome", "cents": 4}]
    events = [*({"op": "c", "after": row} for row in rows), {"op": "d", "before": {"id": 2}}]
    fill(bootstrap, "page-customers", {0: [(None, json.dumps(event).encode()) for event in events]})
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE cities (city TEXT PRIMARY KEY, customers INTEGER, cents INTEGER)")
    page = TABLE.replace("schema=", 'until="now", schema=').replace("/tmp", str(tmp_path))
    examples(f"import evenflow as ef\n{page}", bootstrap, **{"shop.public.customers": "page-customers"})["flow"].run().wait("60s")
    with sqlite3.connect(tmp_path / "shop.db") as database:
        assert database.execute("SELECT * FROM cities").fetchall() == [("Rome", 1, 4)]


def messages_of(bootstrap: str, topic: str, count: int) -> list[Any]:
    """Read the first messages of a topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "page", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages: list[Any] = []
    until(lambda: bool(messages.extend(consumer.consume(10, 0.1)) or len(messages) >= count))
    consumer.close()
    return messages


@pytest.mark.slow
def test_orders_are_written(bootstrap, jobs):
    make_topic(bootstrap, "page-orders")
    Path("orders").mkdir()
    Path("orders/1.json").write_text('{"user": "ann", "n": 1}\n{"user": "bob", "n": 2}\n')
    examples(WRITE.replace("/shared/", ""), bootstrap, orders="page-orders")
    jobs[0].wait("60s")
    messages = messages_of(bootstrap, "page-orders", 2)
    assert [(message.key(), json.loads(message.value())["n"]) for message in messages] == [(b"ann", 1), (b"bob", 2)]


@pytest.mark.slow
def test_users_with_a_large_total_are_upserted(bootstrap):
    for topic in ("page-spent", "page-totals"):
        make_topic(bootstrap, topic)
    orders = [("ann", 900), ("bob", 2_000), ("ann", 200), ("bob", -1_500)]
    fill(bootstrap, "page-spent", {0: [(None, json.dumps({"user": user, "cents": cents}).encode()) for user, cents in orders]})
    page = UPSERT.replace("schema=", 'until="now", schema=')
    config = ef.JobConfig(network=ef.NetworkConfig(source_rows=1))
    examples(page, bootstrap, orders="page-spent", totals="page-totals")["flow"].run(config=config).wait("60s")
    newest = {message.key(): message.value() for message in messages_of(bootstrap, "page-totals", 1)}
    assert {key: json.loads(value)["cents"] for key, value in newest.items() if value is not None} == {b"ann": 1_100}


@pytest.mark.slow
def test_avro_is_read_and_written_with_a_registry(bootstrap):
    fields = [{"name": "user", "type": "string"}, {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}]
    schema = {"type": "record", "name": "Click", "fields": fields}
    for topic in ("page-avro", "page-counts"):
        make_topic(bootstrap, topic)
    with schema_registry() as registry:
        clicks = ef.Dataflow("clicks")
        rows = [{"user": "ann", "at": datetime(2026, 1, 31, 10, minute, tzinfo=UTC)} for minute in range(3)]
        sink = ef.write_kafka("page-avro", bootstrap=bootstrap, format="avro", schema=schema, registry=registry.url)
        clicks.read(ef.from_items(rows)).write(sink)
        clicks.run().wait("60s")

        code = AVRO.replace("http://localhost:8081", registry.url).replace('event_time="at")', 'event_time="at", until="now")')
        examples(code, bootstrap, clicks="page-avro", counts="page-counts")["flow"].run().wait("60s")
    assert {message.key() for message in messages_of(bootstrap, "page-counts", 3)} == {b"ann"}
