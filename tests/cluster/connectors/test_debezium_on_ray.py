"""A job on Ray turns a table's changes into a topic, tables and a changelog, while its workers and its coordinator are killed."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from avro_events import TableEvents, field, optional
from confluent_kafka import Producer
from kafka_broker import kafka_broker, make_topic
from patience import patience
from postgres_server import postgres_server
from schema_registry import schema_registry
from watching import await_rows, pid, until

import evenflow as ef
from evenflow.bench.harness.background import Background
from evenflow.bench.kafka.topics import records_of

pytestmark = pytest.mark.nightly

STEP = 20
"""Changes in each step of 50 ms."""

PARTITIONS, IDS, REPEATED = 3, 200, 8
CITIES, END = [f"city-{number}" for number in range(12)], "the end"
CROWD = 14
"""A city with more people is in the topic; each city has more now and then."""

DEFAULT = 5
OLD = [field("id", "int"), optional("city", "string")]
NEW = [*OLD, field("cents", "int", default=DEFAULT)]


class Changes(Background):
    """A context in which a table changes, and its events are appended to a topic, some of them twice. `rows` are those of the table."""

    def __init__(self, bootstrap: str, topic: str, registry: Any) -> None:
        super().__init__(0.05, "changes")
        self.rows: dict[int, dict[str, Any]] = {}
        self._topic, self._events, self._chance = topic, TableEvents(registry, topic, NEW), random.Random(7)
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
        self._logs = defaultdict[int, list[tuple[bytes, bytes | None]]](list)
        for number in range(IDS):
            self._write(number, "r", {"id": number, "city": CITIES[number % len(CITIES)], "cents": number}, old=not number)
        self._producer.flush(patience(60))

    def finish(self) -> None:
        """Stop, and add a row to each partition, which comes after all others."""
        self.stop()
        for number in range(IDS, IDS + PARTITIONS):
            self._write(number, "c", {"id": number, "city": END, "cents": 1})
        assert self._producer.flush(patience(60)) == 0

    def _step(self) -> None:
        for _ in range(STEP):
            number = self._chance.randrange(IDS)
            if number in self.rows and self._chance.random() < 0.3:
                self._delete(number)
            else:
                city, op = self._chance.choice(CITIES), "u" if number in self.rows else "c"
                self._write(number, op, {"id": number, "city": city, "cents": self._chance.randrange(100)}, old=self._chance.random() < 0.1)
        if self._chance.random() < 0.1:
            partition = self._chance.randrange(PARTITIONS)
            for record in self._logs[partition][-REPEATED:]:
                self._append(partition, *record)
        self._producer.flush()

    def _write(self, number: int, op: str, row: dict[str, Any], *, old: bool = False) -> None:
        """Put a row into the table. `old`: by a connector that doesn't know the column `cents`, so that the row has its default."""
        self.rows[number] = {**row, "cents": DEFAULT} if old else row
        sent = {name: value for name, value in row.items() if name != "cents"} if old else row
        self._append(number % PARTITIONS, self._events.key(number), self._events.event(op, sent, fields=OLD if old else NEW))

    def _delete(self, number: int) -> None:
        del self.rows[number]
        self._append(number % PARTITIONS, self._events.key(number), self._events.event("d"))
        self._append(number % PARTITIONS, self._events.key(number), None)

    def _append(self, partition: int, key: bytes, value: bytes | None) -> None:
        self._logs[partition].append((key, value))
        self._producer.produce(self._topic, value, key, partition)


def by_city(rows: dict[int, dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Return the number of people of each city, and their cents."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows.values():
        found[row["city"]].append(row["cents"])
    return {city: (len(cents), sum(cents)) for city, cents in found.items()}


def flow_of(bootstrap: str, source: str, registry: str, target: str, database: str, delivered: list[Any]) -> ef.Dataflow:
    flow = ef.Dataflow("debezium")
    people = flow.read(ef.read_kafka(source, bootstrap=bootstrap, format="debezium", registry=registry, key="id"))
    cities = people.key_by("city").aggregate(n=ef.count(), cents=ef.sum("cents")).named("cities")
    sizes = cities.key_by("n").aggregate(cities=ef.count()).named("sizes").parallelism(1)
    people.write(ef.write_sql(database, "people", mode="upsert", key="id", name="people"))
    cities.write(ef.write_sql(database, "cities", mode="upsert", key="city", name="to-cities"))
    sizes.write(ef.write_sql(database, "sizes", mode="upsert", key="n", name="to-sizes"))
    cities.filter(ef.col("n") > CROWD).write(ef.write_kafka(target, bootstrap=bootstrap, mode="upsert", key="city", name="crowds"))
    changes = cities.changelog()
    changes.write(ef.write_sql(database, "changes", name="changes")).write(ef.to_list(delivered))
    return flow


def test_killed_processes_and_moves_leave_the_rows_of_the_table_and_exact_changes(tmp_path):
    with kafka_broker() as bootstrap, postgres_server() as server, schema_registry() as registry:
        source, target = make_topic(bootstrap, PARTITIONS), make_topic(bootstrap, 2)
        with psycopg.connect(server.url, autocommit=True) as database:
            database.execute("CREATE TABLE people (id int PRIMARY KEY, city text, cents int)")
            database.execute("CREATE TABLE cities (city text PRIMARY KEY, n bigint, cents bigint)")
            database.execute("CREATE TABLE sizes (n bigint PRIMARY KEY, cities bigint)")
            database.execute("CREATE TABLE changes (city text, n bigint, cents bigint, op text)")
        delivered: list[Any] = []
        with Changes(bootstrap, source, registry) as changes:
            job = flow_of(bootstrap, source, registry.url, target, server.url, delivered).run(
                config=ef.JobConfig(
                    parallelism=2,
                    checkpoint=ef.CheckpointConfig(str(tmp_path), interval="300ms"),
                    restart=ef.RestartConfig("fixed", delay="10ms", most=1_000),
                )
            )
            try:
                disturb(job, delivered)
                changes.finish()
                until(lambda: ended(job, server.url), "the job has read the topic to its end")
                job.stop(drain=True)
                job.wait("60s")
            finally:
                if not job.status().state.final:
                    job.cancel()
        check(changes.rows, bootstrap, target, server.url)


def disturb(job: ef.Job, delivered: list[Any]) -> None:
    """Kill workers and the coordinator, each while the table changes and keys begin to move."""
    moves = itertools.cycle([("read_kafka.newest", range(IDS)), ("cities", CITIES)])
    await_rows(job, delivered, 1)
    for turn, victim in enumerate(("read_kafka-0", "read_kafka.newest-1", "coordinator", "cities-0")):
        operator, keys = next(moves)
        until(lambda: begun(job, operator, keys, turn % 2), "keys begin to move")  # noqa: B023 -- called here only
        os.kill(pid(job, victim), signal.SIGKILL)
        await_rows(job, delivered, 100)
        operator, keys = next(moves)
        until(lambda: begun(job, operator, keys, turn % 2), "keys begin to move")  # noqa: B023 -- as above


def begun(job: ef.Job, operator: str, keys: Sequence[Any], worker: int) -> bool:
    """Begin to move keys; False if the job recovers, or moves others."""
    try:
        job.migrate(operator, keys=list(keys), to=worker, timeout=None)
    except (ef.JobBusyError, ef.JobNotRunningError):
        return False
    return True


def ended(job: ef.Job, url: str) -> bool:
    assert not job.status().state.final, job.status().error
    with psycopg.connect(url) as database:
        return database.execute("SELECT n FROM cities WHERE city = %s", [END]).fetchone() == (PARTITIONS,)


def check(rows: dict[int, dict[str, Any]], bootstrap: str, target: str, url: str) -> None:
    """Assert that the topic and the tables have what follows from the rows."""
    expected = by_city(rows)
    with psycopg.connect(url) as database:
        people = database.execute("SELECT id, city, cents FROM people").fetchall()
        cities = database.execute("SELECT city, n, cents FROM cities").fetchall()
        sizes = database.execute("SELECT n, cities FROM sizes").fetchall()
        net = database.execute(
            "SELECT city, n, cents, sum(CASE op WHEN 'insert' THEN 1 ELSE -1 END) AS net FROM changes GROUP BY 1, 2, 3"
        ).fetchall()
        deletions = database.execute("SELECT count(*) FROM changes WHERE op = 'delete'").fetchone()
    assert sorted(people) == sorted((number, row["city"], row["cents"]) for number, row in rows.items())
    present = sorted((city, n, cents) for city, (n, cents) in expected.items())
    assert sorted(cities) == present
    assert dict(sizes) == Counter(n for _, n, _ in present)
    assert sorted((city, n, cents) for city, n, cents, of in net for _ in range(int(of))) == present
    assert {of for *_, of in net} <= {0, 1}
    assert deletions is not None
    assert deletions[0] > 0
    messages = [message for records in records_of(bootstrap, target).values() for message in records]
    crowds = {key.decode(): json.loads(value) for key, value in dict(messages).items() if key is not None and value is not None}
    assert crowds == {city: {"city": city, "n": n, "cents": cents} for city, n, cents in present if n > CROWD}
    assert any(value is None for _, value in messages), "a city was less crowded once"
